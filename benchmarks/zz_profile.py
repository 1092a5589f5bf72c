import sys, json, collections, os
from benchmarks import as_avx2
if "vnni" not in sys.argv: as_avx2.hold()
from benchmarks import peers, models
import numpy as np
name=sys.argv[1]
m=models.prepare(name)
import onnxruntime as ort
o=ort.SessionOptions(); o.intra_op_num_threads=1; o.enable_profiling=True; o.profile_file_prefix="/tmp/peers/ort"
o.log_severity_level=3
s=ort.InferenceSession(str(peers._qdq(m)),o,providers=["CPUExecutionProvider"])
for _ in range(40): s.run(None,dict(m.images[0]))
f=s.end_profiling()
ev=json.load(open(f)); os.remove(f)
t=collections.defaultdict(list); info={}
for e in ev:
    if e.get("cat")=="Node" and e["name"].endswith("_kernel_time"):
        t[e["name"]].append(e["dur"]); info[e["name"]]=(e["args"]["op_name"],e["args"].get("output_type_shape"))
byop=collections.defaultdict(float)
print("ORT total", sum(min(v) for v in t.values())/1e3)
for k,v in t.items(): byop[info[k][0]]+=min(v)/1e3
print(dict(sorted(byop.items(),key=lambda x:-x[1])))
for k,v in t.items():
    if "-v" in sys.argv: print(f"{min(v)/1e3:.3f}",info[k][0],list(info[k][1][0].values())[0] if info[k][1] else "",k)
import openvino as ov
core=ov.Core()
c=core.compile_model(peers._nncf(m),"CPU",{"INFERENCE_NUM_THREADS":1,"NUM_STREAMS":1,"PERF_COUNT":True,"PERFORMANCE_HINT": "LATENCY","ENABLE_CPU_PINNING": False})
r=c.create_infer_request()
best={}
for _ in range(40):
    r.infer(list(m.images[0].values()))
    for p in r.profiling_info:
        u=p.real_time.total_seconds()*1e3
        if p.node_name not in best or u<best[p.node_name][0]: best[p.node_name]=(u,p.node_type,p.exec_type)
print("OV total", sum(v[0] for v in best.values()))
g=collections.defaultdict(float)
for u,a,b in best.values(): g[a,b]+=u
for k,v in sorted(g.items(),key=lambda x:-x[1])[:14]: print(f"{v:.3f}",k)
if "-v" in sys.argv:
    for k,(u,a,b) in best.items():
        if u>0.002: print(f"{u:.3f}",a,b,k)
