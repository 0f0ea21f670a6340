import sys; sys.path.insert(0, "/work/wt/mover")
from model import *
w = World(sys.argv[1], sys.argv[2])
UP = {"pipeline": {"pipeline"}, "index": {"index"}, "agent": {"agent","index"}, "jobs": {"jobs","agent","index","pipeline"}, "kinodex": set(ROOMS)|{"tests"}, "tests": set(ROOMS)|{"tests"}}
edges = collections.defaultdict(lambda: collections.defaultdict(set))
for n, m in w.mods.items():
    if m.path not in w.new_path or (m.is_init and n in w.lazy): continue
    src = w.new_path[m.path]
    tc = set()
    for node in ast.walk(m.tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for k in ast.walk(node): tc.add(k)
    for node in ast.walk(m.tree):
        if node in tc: continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ROOMS:
            for a in node.names:
                r = w.resolve(node.module, a.name)
                if not r: print("unresolved", m.path, node.module, a.name); continue
                dst = w.new_path[w.mods[r[0]].path]
                if dst != src: edges[src][dst].add((m.path, r[0]))
        elif isinstance(node, ast.Import):
            for a in node.names:
                if a.name.split(".")[0] in ROOMS and a.name in w.mods: edges[src][w.new_path[w.mods[a.name].path]].add((m.path, a.name))
bad = 0
for s in sorted(edges):
    for d in sorted(edges[s]):
        if d.split("/")[0] not in UP[s.split("/")[0]]:
            bad += 1; print("ARROW", s, "->", d, sorted(edges[s][d])[:3])
print(bad, "bad arrows")
sys.path.insert(0, "/work/shared/tools")
from house import circles
for c in circles({s: set(d) for s, d in edges.items()}):
    print("CIRCLE", len(c), c)
    for s in c:
        for d in edges[s]:
            if d in c: print("    ", s, "->", d, sorted(edges[s][d]))
