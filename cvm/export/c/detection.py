"""Non-maximum suppression: nms."""

from __future__ import annotations

from string import Template

from cvm.export.c.instruction import CInstruction, literal

_OTHER_CLASS = " || classes[other] != classes[scratch[j]]"
_NMS = Template("""\
for (int32_t n = 0; n < $B; n++) {
  const int32_t *boxes = x0 + n * $N * 4;
  const int32_t *scores = x1 + n * $N;
  $CLASSES
  int32_t *places = y + n * $KEEP;
  int32_t found = 0;
  int32_t kept = 0;
  for (int32_t i = 0; i < $N; i++) {
    if (scores[i] >= $LEAST) scratch[found++] = i;
  }
  sort_32(scores, scratch, found, 1);
  if (found > $CANDIDATES) found = $CANDIDATES;
  for (int32_t j = 0; j < $KEEP; j++) places[j] = $N;
  for (int32_t j = 0; j < found && kept < $KEEP; j++) {
    const int32_t *box = boxes + scratch[j] * 4;
    const int64_t own = area(box[0], box[1], box[2], box[3]);
    int keeps = 1;
    for (int32_t k = 0; k < $RIVALS && keeps; k++) {
      const int32_t other = places[k];
      if (other == $N$OTHER_CLASS) continue;
      const int32_t *rival = boxes + other * 4;
      const int64_t shared = shared_area(box, rival);
      const int64_t joined = own + area(rival[0], rival[1], rival[2], rival[3]) - shared;
      if (joined > 0 && shared * $Q $OVER joined * $P) keeps = 0;
    }
    if (keeps) places[$TARGET] = scratch[j];
    kept += keeps;
  }
}
""")


def nms(node: CInstruction) -> str:
    """The candidates' indices are sorted in the scratch; those that were kept are read back from the result."""
    boxes, _, classes = node.operands
    by_class, gaps = classes.shape[1] > 1, bool(node.attributes["gaps"])
    p, q = node.integers("overlap")
    return _NMS.substitute(
        B=boxes.shape[0],
        N=boxes.shape[1],
        KEEP=node.integer("keep"),
        CANDIDATES=node.integer("candidates"),
        LEAST=literal(node.integer("least_score")),
        CLASSES=f"const int32_t *classes = x2 + n * {boxes.shape[1]};"
        if by_class
        else "(void)x2;",
        OTHER_CLASS=_OTHER_CLASS if by_class else "",
        RIVALS="j" if gaps else "kept",
        TARGET="j" if gaps else "kept",
        OVER=">=" if node.attributes["inclusive"] else ">",
        P=p,
        Q=q,
    )


def nms_scratch(node: CInstruction) -> int:
    """Integers of 32 bits beside the result: an index for each box."""
    return node.operands[0].shape[1]
