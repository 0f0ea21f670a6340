"""Read the tree, the map, and where each name is defined."""
from __future__ import annotations
import ast, subprocess, fnmatch, re, sys, collections
from dataclasses import dataclass, field
from pathlib import Path

ROOMS = ("pipeline", "index", "agent", "jobs", "kinodex")

def git_files(root):
    return subprocess.check_output(["git", "ls-files"], text=True, cwd=root).split("\n")[:-1]

def dotted(path: str) -> str:
    return path[:-3].replace("/", ".").removesuffix(".__init__")

@dataclass
class Mod:
    path: str
    src: str
    tree: ast.Module
    @property
    def name(self): return dotted(self.path)
    @property
    def is_init(self): return self.path.endswith("__init__.py")

def load(root):
    mods = {}
    for f in git_files(root):
        if f.endswith(".py") and (f.split("/")[0] in ROOMS + ("tests", "docs")):
            src = (Path(root) / f).read_text(encoding="utf-8")
            mods[dotted(f)] = Mod(f, src, ast.parse(src))
    return mods

def read_map(path, mods):
    """new path -> ordered old paths; explicit names before globs."""
    lines = []
    for line in Path(path).read_text().splitlines():
        line = line.split("#")[0].strip()
        if not line: continue
        new, _, olds = line.partition(":")
        lines.append((new.strip(), olds.split()))
    product = [m.path for m in mods.values() if m.path.split("/")[0] in ROOMS]
    claimed = {}
    for new, olds in lines:
        for o in olds:
            if not o.startswith("-") and "*" not in o:
                if o not in product: print("map names no file:", o, "for", new); continue
                if o in claimed: print("claimed twice:", o, claimed[o], new); continue
                claimed[o] = new
    order = collections.defaultdict(list)
    excluded = {(new, o[1:]) for new, olds in lines for o in olds if o.startswith("-")}
    for new, olds in lines:
        order[new]
        for o in olds:
            if o.startswith("-"): continue
            if "*" not in o:
                if claimed.get(o) == new and o not in order[new]: order[new].append(o)
            else:
                for p in sorted(product):
                    if re.fullmatch(re.escape(o).replace(r"\*", "[^/]*"), p) and p not in claimed and (new, p) not in excluded:
                        claimed[p] = new; order[new].append(p)
    homeless = [p for p in product if p not in claimed]
    return {n: o for n, o in order.items() if o}, homeless

def target_names(t):
    if isinstance(t, ast.Name): yield t.id
    elif isinstance(t, (ast.Tuple, ast.List)):
        for e in t.elts: yield from target_names(e)
    elif isinstance(t, ast.Starred): yield from target_names(t.value)

def top_defs(tree):
    """Names that a module defines at its top level (not imports)."""
    out = {}
    def visit(body):
        for n in body:
            if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)): out.setdefault(n.name, n)
            elif isinstance(n, ast.Assign):
                for t in n.targets:
                    for name in target_names(t): out.setdefault(name, n)
            elif isinstance(n, (ast.AnnAssign, ast.AugAssign)) and isinstance(n.target, ast.Name): out.setdefault(n.target.id, n)
            elif isinstance(n, ast.If): visit(n.body); visit(n.orelse)
            elif isinstance(n, ast.For):
                for name in target_names(n.target): out.setdefault(name, n)
                visit(n.body)
            elif isinstance(n, ast.Try): visit(n.body); [visit(h.body) for h in n.handlers]
            elif isinstance(n, ast.TypeAlias) if hasattr(ast, "TypeAlias") else False: out.setdefault(n.name.id, n)
    visit(tree.body)
    return out

def top_imports(tree):
    """[(node, type_checking)] at the top level."""
    out = []
    for n in tree.body:
        if isinstance(n, (ast.Import, ast.ImportFrom)): out.append((n, False))
        elif isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING":
            for k in n.body:
                if isinstance(k, (ast.Import, ast.ImportFrom)): out.append((k, True))
                else: print("odd in TYPE_CHECKING", ast.unparse(k)[:80])
    return out

class World:
    def __init__(self, root, mapfile):
        self.root = Path(root)
        self.mods = load(root)
        self.defs = {n: top_defs(m.tree) for n, m in self.mods.items()}
        self.group, self.homeless = read_map(mapfile, self.mods)
        self.new_path = {o: n for n, olds in self.group.items() for o in olds}
        self.lazy = {}
        for n, m in self.mods.items():
            if m.is_init and "__getattr__" in self.defs[n]: self.lazy[n] = self._lazy_table(m)

    def _lazy_table(self, m):
        table = {}
        for n in m.tree.body:
            if isinstance(n, ast.If):
                for k in n.body:
                    if isinstance(k, ast.ImportFrom):
                        for a in k.names: table[a.asname or a.name] = (k.module, a.name)
        return table

    def resolve(self, module, name, seen=()):
        """Where `from module import name` is defined: (module, name), or (submodule, None)."""
        if (module, name) in seen: return None
        m = self.mods.get(module)
        if m is None: return None
        if name in self.defs[module] and not (m.is_init and module in self.lazy and name in self.lazy[module]): return (module, name)
        for node, tc in top_imports(m.tree):
            if isinstance(node, ast.ImportFrom):
                for a in node.names:
                    if (a.asname or a.name) == name and (node.module or "").split(".")[0] in ROOMS + ("tests", "docs"):
                        r = self.resolve(node.module, a.name, seen + ((module, name),))
                        if r: return r
        if module + "." + name in self.mods: return (module + "." + name, None)
        return None
