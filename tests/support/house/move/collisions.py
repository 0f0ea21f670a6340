import sys; sys.path.insert(0, "/work/wt/mover")
from model import *; from scope import *
w = World(sys.argv[1], sys.argv[2])
total = 0
HEAVY = {"torch","ray","transformers","av","lance","onnxruntime","onnx","scipy","matplotlib","open_clip","decord","mcp","trl","datasets","starlette","uvicorn","openai"}
for new, olds in sorted(w.group.items()):
    if len(olds) < 2: continue
    defs = collections.defaultdict(list); imps = collections.defaultdict(lambda: collections.defaultdict(list)); heavy = {}
    for o in olds:
        n = dotted(o)
        if o.endswith("__init__.py") and len(olds) > 1: continue
        for d in w.defs[n]: defs[d].append(o)
        for node, tc in top_imports(w.mods[n].tree):
            for a in node.names:
                local = a.asname or a.name
                if isinstance(node, ast.ImportFrom):
                    src = w.resolve(node.module, a.name) or (node.module, a.name)
                else: src = ("import", a.name)
                imps[local][src].append(o)
                root = (node.module if isinstance(node, ast.ImportFrom) else a.name).split(".")[0]
                if root in HEAVY and not tc: heavy.setdefault(o, set()).add(root)
    out = []
    for d, where in defs.items():
        if len(where) > 1 and not (d in ("__all__",)): out.append(f"   def {d}: {[x.split('/')[-1] for x in where]}")
        others = [(s, fs) for s, fs in imps.get(d, {}).items() if w.new_path.get((w.mods[s[0]].path if s[0] in w.mods else '')) != new]
        if others: out.append(f"   def {d} in {where[0].split('/')[-1]} but imported {others}")
    for l, srcs in imps.items():
        if len(srcs) > 1 and l not in defs: out.append(f"   import {l}: { {f'{a}.{b}' : [x.split('/')[-1] for x in fs] for (a,b), fs in srcs.items()} }")
    hv = {o.split('/')[-1]: h for o, h in heavy.items()}
    if hv and len({frozenset(heavy.get(o, ())) for o in olds}) > 1: out.append(f"   HEAVY {hv} of {len(olds)}")
    lines = sum(len(w.mods[dotted(o)].src.splitlines()) for o in olds)
    if out:
        total += len(out)
        print(new, lines, len(olds)); print("\n".join(out))
print(total)
