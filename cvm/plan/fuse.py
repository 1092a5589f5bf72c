"""The plan that runs: few steps, no value in memory that only one step needs, nothing moved that can stay."""

from __future__ import annotations

from cvm.plan.concat import dissolve_concats
from cvm.plan.halves import find_halves
from cvm.plan.layout import lay_out
from cvm.plan.regions import find_regions
from cvm.plan.stages import step_of_region
from cvm.plan.steps import Draft, Plan
from cvm.plan.trim import drop_trims
from cvm.plan.unfused import step_of
from cvm.plan.views import find_views
from cvm.proof.validate import WellFormed


def fused(form: WellFormed) -> Plan:
    """Each region as one step, at the place of its root; views and most concats as no step at all."""
    program, halves = form.program, find_halves(form)
    regions = find_regions(form, halves)
    inside = {value for region in regions for value in region}
    views = {
        value: base
        for value, base in find_views(form).items()
        if value not in inside
    }
    steps = {
        region[-1]: step_of_region(form, region, halves) for region in regions
    }
    covered = inside | views.keys()
    for number, instruction in enumerate(
        program.instructions, program.first_instruction
    ):
        if number not in covered:
            steps[number] = step_of(instruction, number)
    draft = Draft(form, tuple(steps[value] for value in sorted(steps)), views)
    return lay_out(dissolve_concats(drop_trims(draft)))
