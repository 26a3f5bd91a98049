"""Compares our models with those of Gymnasium after compilation, field by field, to the last bit.

    python compare_models.py

Needs gymnasium[mujoco]. Names, colours, lights and cameras are ours; everything that moves must be equal. Exits with 1
where a field differs.
"""

import pathlib

import gymnasium
import mujoco
import numpy

MODELS = {"hopper": "Hopper-v5", "walker2d": "Walker2d-v5", "half_cheetah": "HalfCheetah-v5"}

# How looks and bookkeeping begin or are called. Gymnasium's cheetah has one unused user number per shape.
LOOKS = ("cam_", "light_", "mat_", "tex_", "name", "names", "nmat", "ntex", "nnames")
OTHERS = {"geom_rgba", "geom_matid", "geom_user", "nuser_geom", "narena", "nbuffer", "signature"}


def fields(model):
    """The numbers of a compiled model by name, without its looks."""
    found = {}
    for prefix, part in (("", model), ("opt.", model.opt), ("stat.", model.stat)):
        for name in dir(part):
            value = getattr(part, name)
            if name.startswith(("_", *LOOKS)) or name in OTHERS or not isinstance(value, (int, float, numpy.ndarray)):
                continue
            found[prefix + name] = numpy.asarray(value)
    return found


def main():
    folder = pathlib.Path(__file__).parent.parent / "models"
    wrong = []
    for ours, theirs in MODELS.items():
        mine = fields(mujoco.MjModel.from_xml_path(str(folder / f"{ours}.xml")))
        published = fields(gymnasium.make(theirs).unwrapped.model)
        different = [name for name in published if not numpy.array_equal(mine[name], published[name])]
        print(f"{ours}: {len(published)} fields, {len(different)} differ {different}")
        wrong += different
    if wrong:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
