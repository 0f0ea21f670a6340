import sys; sys.path.insert(0, "/work/wt/mover")
from model import *
w = World(sys.argv[1], sys.argv[2])
print(len(w.group), "new files;", len(w.homeless), "homeless")
for h in w.homeless:
    m = w.mods[dotted(h)]
    print("  homeless", h, len(m.src.splitlines()), "lines", sorted(w.defs[dotted(h)])[:6] if not h.endswith("__init__.py") else "")
