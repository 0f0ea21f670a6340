"""Merge modules by the map and rewrite every importer. usage: emit.py ROOT MAP RENAMES"""
import sys; sys.path.insert(0, "/work/wt/mover")
from model import *; from scope import *
import shutil, os, json

ROOT, MAP, REN = sys.argv[1:4]
w = World(ROOT, MAP)
if w.homeless: print("HOMELESS", w.homeless)
OURS = ROOMS + ("tests", "docs")
KEEP_FACE = {"kinodex"}
INSTALLED = os.environ.get("PREFIX", "")     # "kinodex." once rooms are imported by it

renames, import_renames, FORCED = {}, {}, set()
for line in Path(REN).read_text().splitlines():
    if not line.strip() or line.startswith("#"): continue
    mod, old, new = line.split("\t")
    if old.startswith("import:"): import_renames[(mod, old[7:])] = new
    elif new == "drop": FORCED.add((mod, old))
    elif new != "same": renames[(mod, old)] = new
for (mod, old) in list(renames):
    if mod not in w.mods or old not in w.defs[mod]: 
        if mod != "kinodex.x": print("rename of nothing:", mod, old)

def new_module(mod: str) -> str:
    """New dotted name of an old module."""
    m = w.mods[mod]
    p = w.new_path.get(m.path)
    if p is None: return mod
    d = dotted(p)
    return d if d.split(".")[0] == "kinodex" else INSTALLED + d

def seg_offsets(src):
    """Line starts in bytes."""
    b = src.encode(); starts = [0]
    for i, c in enumerate(b):
        if c == 10: starts.append(i + 1)
    return b, starts

class Rewrite:
    """Edits of one module's text."""
    def __init__(self, mod: str, src: str, tree: ast.Module, group_file):
        self.mod, self.src, self.tree, self.gf = mod, src, tree, group_file
        self.b, self.starts = seg_offsets(src)
        self.edits = []           # (start, end, text)
        self.out_imports = []     # (type_checking, line)
        self.drop_stmts = []      # top-level statement nodes to drop
        self.rename_globals = {}  # name -> new
        self.module_alias = {}    # local -> (submodule old name, new alias or None when same group)
        self.warnings = []
    def pos(self, line, col): return self.starts[line - 1] + col
    def span(self, n): return self.pos(n.lineno, n.col_offset), self.pos(n.end_lineno, n.end_col_offset)
    def same_group(self, old_mod):
        return self.gf is not None and w.new_path.get(w.mods[old_mod].path) == self.gf
    def all_names(self):
        return {n.id for n in ast.walk(self.tree) if isinstance(n, ast.Name)} | {a.arg for a in ast.walk(self.tree) if isinstance(a, ast.arg)}

    def import_lines(self, node, local_rename):
        """New import lines of an ImportFrom of ours; fills local_rename {old local: new local}."""
        lines = []
        for a in node.names:
            local = a.asname or a.name
            mod = node.module
            if mod in KEEP_FACE and not (mod + "." + a.name in w.mods and a.name not in w.lazy.get(mod, {})):
                lines.append((f"from {mod} import {a.name}" + (f" as {a.asname}" if a.asname else ""))); continue
            r = w.resolve(mod, a.name)
            if r is None:
                if mod not in w.mods: self.warnings.append(f"unknown {mod}.{a.name}"); lines.append(f"from {mod} import {a.name}"); continue
                r = (mod, a.name)
            if r[1] is None:
                sub = r[0]
                if sub in w.lazy and sub not in KEEP_FACE: self.warnings.append(f"imports a face as a module: {sub}")
                if self.same_group(sub):
                    self.module_alias[local] = (sub, None); continue
                nm = new_module(sub)
                pkg, _, stem = nm.rpartition(".")
                alias = stem
                if local != stem:
                    if a.asname and a.asname != sub.rpartition(".")[2]: alias = a.asname      # an alias chosen on purpose
                    elif stem in self.all_names() or stem in w.defs.get(self.mod, {}) or stem in self.claimed_aliases(nm): alias = local
                self.claims[alias] = nm
                lines.append(f"from {pkg} import {stem}" + (f" as {alias}" if alias != stem else ""))
                self.module_alias[local] = (sub, alias)
            else:
                dmod, dname = r
                nname = renames.get((dmod, dname), dname)
                if self.same_group(dmod):
                    if local != nname: local_rename[local] = nname
                    continue
                forced = import_renames.get((self.mod, local))
                nl = forced or (a.asname or nname)
                if not forced and not a.asname and nname != local and nname in self.all_names(): nl = local
                lines.append(f"from {new_module(dmod)} import {nname}" + (f" as {nl}" if nl != nname else ""))
                if nl != local: local_rename[local] = nl
        return lines
    def claimed_aliases(self, nm): return {a for a, m in self.claims.items() if m != nm}

    def run(self, collect_imports):
        self.claims = {}
        top = top_imports(self.tree)
        topnodes = {n for n, _ in top}
        for node, tc in top:
            lines = None
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in OURS:
                lines = self.import_lines(node, self.rename_globals)
            elif isinstance(node, ast.ImportFrom) and collect_imports:
                if node.module == "__future__": lines = []
                else:
                    lines = []
                    for a in node.names:
                        forced = import_renames.get((self.mod, a.asname or a.name))
                        if forced: self.rename_globals[a.asname or a.name] = forced
                        nl = forced or a.asname
                        lines.append(f"from {node.module} import {a.name}" + (f" as {nl}" if nl else ""))
            elif isinstance(node, ast.Import):
                ours = [a for a in node.names if a.name.split(".")[0] in OURS and a.name in w.mods and a.name not in KEEP_FACE and "." in a.name]
                if ours:
                    lines = []
                    for a in node.names:
                        nm = new_module(a.name)
                        if a.asname:
                            pkg, _, stem = nm.rpartition(".")
                            lines.append(f"from {pkg} import {stem} as {a.asname}" if a.asname != stem else f"from {pkg} import {stem}")
                            self.module_alias[a.asname] = (a.name, a.asname)
                        else:
                            lines.append(f"import {nm}")
                            self.warnings.append(f"plain import {a.name} -> {nm}")
                elif collect_imports:
                    lines = [f"import {a.name}" + (f" as {a.asname}" if a.asname else "") for a in node.names]
            if lines is None: continue
            if collect_imports:
                self.out_imports += [(tc, l) for l in lines]
            else:
                self.replace_stmt(node, lines)
        # nested imports
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node not in topnodes and (node.module or "").split(".")[0] in OURS:
                local = {}
                lines = self.import_lines(node, local)
                self.replace_stmt(node, lines)
                if local: self.rename_in_function(node, local)
            elif isinstance(node, ast.Import) and node not in topnodes:
                for a in node.names:
                    if a.name.split(".")[0] in OURS and "." in a.name and a.name in w.mods:
                        self.warnings.append(f"nested import {a.name}")
                        nm = new_module(a.name)
                        self.replace_stmt(node, [f"import {nm}" + (f" as {a.asname}" if a.asname else "")])
                        if a.asname: self.module_alias[a.asname] = (a.name, a.asname)
        # own definitions renamed
        for name in w.defs.get(self.mod, {}):
            if (self.mod, name) in renames: self.rename_globals[name] = renames[(self.mod, name)]
        for node, name in global_names(self.tree):
            new = self.rename_globals.get(name)
            if not new: continue
            if isinstance(node, ast.Name): s, e = self.span(node); self.edits.append((s, e, new))
            else:
                s = self.pos(node.lineno, node.col_offset)
                m = re.compile(rb"(?:async\s+def|def|class)\s+(" + name.encode() + rb")\b").search(self.b, s)
                self.edits.append((m.start(1), m.end(1), new))
        before = self.all_names()
        for old, new in self.rename_globals.items():
            if new in before and new not in w.defs.get(self.mod, {}): self.warnings.append(f"SHADOW? {old} -> {new}, a name that is used here")
        for f in ast.walk(self.tree):
            if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef)):
                loc = bound_in(f.body) | args_of(f.args)
                for node in ast.walk(f):
                    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and self.module_alias.get(node.value.id, (0, 0))[1] is None and self.attr(self.module_alias[node.value.id][0], node.attr) in loc:
                        self.warnings.append(f"SHADOW {node.value.id}.{node.attr} in {f.name}")
        # module aliases
        shadow = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in self.module_alias:
                sub, alias = self.module_alias[node.value.id]
                d = self.attr(sub, node.attr)
                if d is None: self.warnings.append(f"{self.mod}: {node.value.id}.{node.attr} is not defined in {sub}"); d = node.attr
                s, e = self.span(node)
                self.edits.append((s, e, d if alias is None else f"{alias}.{d}"))
                shadow.add(node.value)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name) and node.id in self.module_alias and node not in shadow:
                sub, alias = self.module_alias[node.id]
                if alias is None: self.warnings.append(f"{self.mod}:{node.lineno}: the module {node.id} itself is used in its own group"); continue
                if isinstance(node.ctx, ast.Load) and alias != node.id: s, e = self.span(node); self.edits.append((s, e, alias))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("setattr", "delattr") and len(node.args) > 1:
                t, n = node.args[0], node.args[1]
                if isinstance(t, ast.Name) and t.id in self.module_alias and isinstance(n, ast.Constant) and isinstance(n.value, str):
                    d = self.attr(self.module_alias[t.id][0], n.value)
                    if d and d != n.value: s, e = self.span(n); self.edits.append((s, e, json.dumps(d)))
        self.strings()
        return self
    def attr(self, sub, name):
        if name in w.defs[sub]: return renames.get((sub, name), name)
        r = w.resolve(sub, name)
        if r and r[1]: return renames.get(r, r[1])
        for node, _ in top_imports(w.mods[sub].tree):
            for a in node.names:
                if (a.asname or a.name) == name: return name
        return None
    def strings(self):
        docs = set()
        for n in ast.walk(self.tree):
            if isinstance(n, (ast.Module, ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)) and n.body and isinstance(n.body[0], ast.Expr) and isinstance(n.body[0].value, ast.Constant):
                docs.add(n.body[0].value)
        fparts = {k for n in ast.walk(self.tree) if isinstance(n, ast.JoinedStr) for k in ast.walk(n)}
        for n in ast.walk(self.tree):
            if isinstance(n, ast.JoinedStr) or (isinstance(n, ast.Constant) and isinstance(n.value, str) and n not in fparts):
                s, e = self.span(n)
                raw = self.b[s:e].decode()
                new = rewrite_text(raw)
                if new != raw: self.edits.append((s, e, new))
    def rename_in_function(self, imp, local):
        best = None
        for f in ast.walk(self.tree):
            if isinstance(f, (ast.FunctionDef, ast.AsyncFunctionDef)) and any(k is imp for k in ast.walk(f)):
                if best is None or f.lineno >= best.lineno: best = f
        for n in ast.walk(best):
            if isinstance(n, ast.Name) and n.id in local: s, e = self.span(n); self.edits.append((s, e, local[n.id]))
    def replace_stmt(self, node, lines):
        s, e = self.span(node)
        # a trailing comment goes with it
        eol = self.b.find(b"\n", e); eol = len(self.b) if eol < 0 else eol
        indent = " " * node.col_offset
        tail = self.b[e:eol].decode()
        if lines: self.edits.append((s, e, ("\n" + indent).join(dict.fromkeys(lines))))
        else:
            start = self.starts[node.lineno - 1]
            parent_body = self.body_of(node)
            if parent_body is not None and len(parent_body) == 1: self.edits.append((s, eol, "pass"))
            else:
                end = eol + 1
                # blank line after a dropped import block at the head of a function
                self.edits.append((start, min(end, len(self.b)), ""))
    def body_of(self, node):
        for n in ast.walk(self.tree):
            for f in ("body", "orelse", "finalbody"):
                b = getattr(n, f, None)
                if isinstance(b, list) and node in b: return b
    def apply(self, lo=0, hi=None):
        hi = len(self.b) if hi is None else hi
        seen, out, at = set(), [], lo
        edits = sorted({x for x in self.edits if lo <= x[0] and x[1] <= hi}, key=lambda x: (x[0], -x[1]))
        for s, e, t in edits:
            if s < at:
                if (s, e) in seen: continue
                # inside an edit that was made (a string within a call): skip
                self.warnings.append(f"overlap at {self.b[s:e][:40]!r}"); continue
            out.append(self.b[at:s].decode()); out.append(t); at = e; seen.add((s, e))
        out.append(self.b[at:hi].decode())
        return "".join(out)

FROM = re.compile(r"\bfrom ((?:pipeline|index|agent|jobs|kinodex)(?:\.\w+)*) import (\([^)]*\)|[\w, ]+?(?=$|[\n;\"'`\\]|\s+#))", re.M)
MODS = None
def rewrite_text(text: str) -> str:
    """Old module names, paths and imports in a text that is not parsed: strings, docs, scripts."""
    def imports(m):
        mod, names = m.group(1), m.group(2).strip("() ")
        out = collections.defaultdict(list)
        for part in re.split(r"\s*,\s*", names.replace("\n", " ").strip(" ,")):
            bits = part.split()
            if not bits: continue
            name, asname = bits[0], (bits[2] if len(bits) > 2 else None)
            if mod in KEEP_FACE and not (mod + "." + name in w.mods): out[mod].append(part); continue
            r = w.resolve(mod, name) if mod in w.mods else None
            if r is None:
                if mod in w.mods: out[new_module(mod)].append(part)
                else: out[mod].append(part)
            elif r[1] is None:
                nm = new_module(r[0]); pkg, _, stem = nm.rpartition(".")
                alias = asname or name
                out[pkg].append(stem + (f" as {alias}" if alias != stem else ""))
            else:
                nn = renames.get(r, r[1]); alias = asname or name
                out[new_module(r[0])].append(nn + (f" as {alias}" if alias != nn else ""))
        sep = "; " if ";" in text and "\n" not in text else "\n" + re.search(r"[^\n]*$", text[:m.start()]).group(0).replace("from", "")[:0]
        lines = [f"from {k} import {', '.join(v)}" for k, v in out.items()]
        if len(lines) == 1: return lines[0]
        indent = re.search(r"([ \t]*(?:>>> )?)[^\n]*$", text[:m.start()]).group(1)
        if "\n" not in text: return "; ".join(lines)
        return ("\n" + indent).join(lines)
    text = FROM.sub(imports, text)
    text = PATHS.sub(lambda m: PATHMAP[m.group(0)], text)
    text = DOTTED.sub(lambda m: DOTMAP[m.group(0)], text)
    return text

PACKAGES = {}
for n, m in w.mods.items():
    if m.is_init and "." in n and m.path in w.new_path:
        homes = collections.Counter(str(Path(p).parent) if not p.endswith("__init__.py") else str(Path(p).parent) for o, p in w.new_path.items() if o.startswith(str(Path(m.path).parent) + "/"))
        only = {p for o, p in w.new_path.items() if o.startswith(str(Path(m.path).parent) + "/") and "/" not in o[len(str(Path(m.path).parent))+1:]}
        new = homes.most_common(1)[0][0] if len(only) > 1 else next(iter(only))[:-3]
        new = new.replace("/", ".")
        PACKAGES[n] = new if new.startswith("kinodex") else INSTALLED + new
PATHMAP = {m.path: (p if not w.mods[n].is_init else p) for n, m in w.mods.items() if (p := w.new_path.get(m.path)) and p != m.path}
PATHS = re.compile(r"(?<![\w/.])(?:" + "|".join(re.escape(p) for p in sorted(PATHMAP, key=len, reverse=True)) + r")(?!\w)") if PATHMAP else re.compile(r"(?!)")
DOTMAP = {n: new_module(n) for n, m in w.mods.items() if "." in n and not m.is_init and m.path in w.new_path and new_module(n) != n}
DOTMAP.update({n: p for n, p in PACKAGES.items() if p != n})
DOTTED = re.compile(r"(?<![\w/.])(?:" + "|".join(re.escape(p) for p in sorted(DOTMAP, key=len, reverse=True)) + r")(?![\w])") if DOTMAP else re.compile(r"(?!)")

def is_doc(n): return isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant) and isinstance(n.value.value, str)
def is_tc(n): return isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"
def is_all(n): return isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "__all__"
def is_main(n): return isinstance(n, ast.If) and ast.unparse(n.test) == "__name__ == '__main__'"

def body_text(rw: Rewrite):
    """The statements of a module but its docstring, imports and __all__; and its __main__ block."""
    tree = rw.tree
    parts, mains, prev = [], [], 0
    for i, n in enumerate(tree.body):
        first = n.decorator_list[0].lineno if getattr(n, "decorator_list", None) else n.lineno
        e = rw.pos(n.end_lineno, n.end_col_offset)
        eol = rw.b.find(b"\n", e); eol = len(rw.b) if eol < 0 else eol + 1
        # a docstring of a constant belongs to it
        if isinstance(n, (ast.Import, ast.ImportFrom)) or (i == 0 and is_doc(n)) or is_tc(n) or is_all(n):
            lead = rw.b[prev:rw.pos(first, 0)].decode()
            if "#" in lead and not (i == 0): parts.append(("import-comment", lead.strip() + "\n"))
            prev = eol; continue
        if any(x[0] == n for x in rw.drop_stmts): prev = eol; continue
        text = rw.apply(prev, eol)
        (mains if is_main(n) else parts).append(("", text)); prev = eol
    tail = rw.apply(prev) if prev < len(rw.b) else ""
    if tail.strip(): parts.append(("", tail))
    comments = [t for k, t in parts if k]
    return "".join(t for k, t in parts if not k).strip("\n"), "".join(t for _, t in mains).strip("\n"), comments

def comment_of(doc):
    import textwrap
    out = []
    for l in doc.strip().splitlines():
        if len(l) <= 118: out.append(("# " + l.rstrip()) if l.strip() else "#")
        else: out += ["# " + x for x in textwrap.wrap(l.strip(), 116)]
    return "\n".join(out)

def order(olds):
    """Modules so that what is read at import comes first; else in the order of the map."""
    mods = [dotted(o) for o in olds]
    need = {m: set() for m in mods}
    for m in mods:
        t = w.mods[m].tree
        local = {}
        for node, tc in top_imports(t):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ROOMS:
                for a in node.names:
                    r = w.resolve(node.module, a.name) or ((node.module, a.name) if node.module in w.mods else None)
                    if r and r[0] in need and r[0] != m: local[a.asname or a.name] = r[0]
        for n in t.body:
            if is_tc(n) or is_main(n) or isinstance(n, (ast.Import, ast.ImportFrom)): continue
            for name in import_time_names(n):
                if name in local: need[m].add(local[name])
    out, seen = [], set()
    def put(m, path=()):
        if m in seen: return
        if m in path: print("  import-time circle in group", path, m); return
        for d in sorted(need[m], key=mods.index): put(d, (*path, m))
        if m not in seen: seen.add(m); out.append(m)
    for m in mods: put(m)
    return out

def main():
    report, written = [], {}
    removed = []
    # remaining collisions and identical definitions
    for new, olds in w.group.items():
        homes = collections.defaultdict(list)
        for o in olds:
            m = dotted(o)
            if m in w.lazy and m not in KEEP_FACE: continue
            for d, node in w.defs[m].items():
                if d == "__all__": continue
                homes[renames.get((m, d), d)].append((m, node))
        for d, where in homes.items():
            for m, n in [x for x in where if (x[0], d) in FORCED]: DROPPED.setdefault(m, []).append(n); where.remove((m, n))
            if len(where) > 1:
                texts = {ast.unparse(n) for _, n in where}
                if len(texts) == 1:
                    for m, n in where[1:]: DROPPED.setdefault(m, []).append(n)
                else: report.append(f"COLLISION {new}: {d} in {[m for m, _ in where]}")
    for new, olds in w.group.items():
        olds_mods = order(olds)
        main_mod = dotted(olds[0])
        single = len(olds) == 1
        rws = {}
        for m in olds_mods:
            if m in w.lazy and m not in KEEP_FACE: continue
            mod = w.mods[m]
            rw = Rewrite(m, mod.src, mod.tree, new)
            rw.drop_stmts = [(n,) for n in DROPPED.get(m, [])]
            rw.run(collect_imports=not single)
            rws[m] = rw
        if single:
            m = dotted(olds[0])
            text = rws[m].apply() if m in rws else f'"""{ast.get_docstring(w.mods[m].tree, clean=False)}"""\n'
            written[new] = text
        else:
            doc = ast.get_docstring(w.mods[main_mod].tree, clean=False)
            runtime, tc = [], []
            bodies, mains, icomments = [], [], []
            for m in olds_mods:
                if m not in rws: continue
                body, main_, ic = body_text(rws[m])
                for t, l in rws[m].out_imports: (tc if t else runtime).append(l)
                if ic: icomments.append((m, ic))
                if body:
                    d = ast.get_docstring(w.mods[m].tree)
                    head = comment_of(d) + "\n\n" if d and m != main_mod else ""
                    bodies.append(head + body)
                if main_: mains.append(main_)
            if icomments: report.append(f"import comments dropped in {new}: {icomments}")
            runtime = list(dict.fromkeys(runtime)); tc = [l for l in dict.fromkeys(tc) if l not in runtime]
            text = f'"""{doc}"""\n\nfrom __future__ import annotations\n\n' + "\n".join(runtime) + "\n\n"
            if tc: 
                if "from typing import TYPE_CHECKING" not in runtime: text = text.replace("\n\nfrom __future__ import annotations\n\n", "\n\nfrom __future__ import annotations\n\nfrom typing import TYPE_CHECKING\n", 1)
                text += "if TYPE_CHECKING:\n" + "\n".join("    " + l for l in tc) + "\n\n"
            text += "\n\n\n".join(bodies) + "\n"
            if mains: text += "\n\n" + "\n\n".join(mains) + "\n"
            written[new] = text
        for m, rw in rws.items(): report += [f"{m}: {x}" for x in rw.warnings]
        removed += [o for o in olds if o != new]
    # tests and docs scripts
    for n, m in w.mods.items():
        if m.path.split("/")[0] in ("tests", "docs"):
            rw = Rewrite(n, m.src, m.tree, None).run(collect_imports=False)
            out = rw.apply()
            if out != m.src: written[m.path] = out
            report += [f"{n}: {x}" for x in rw.warnings]
    for p in removed: (w.root / p).unlink()
    for p, t in written.items():
        f = w.root / p; f.parent.mkdir(parents=True, exist_ok=True); f.write_text(t, encoding="utf-8")
    print("\n".join(report))
    # other texts
    for f in git_files(ROOT):
        p = w.root / f
        if f.endswith((".md", ".toml", ".yaml", ".yml", ".txt", ".jinja", ".js", ".css", ".sh", ".cfg", ".json")) or p.name in ("Makefile", "run") or "Dockerfile" in p.name or "Containerfile" in p.name:
            if not p.exists() or f.startswith("tests/data/server_refusals") or p.is_symlink(): continue
            t = p.read_text(encoding="utf-8"); n = rewrite_text(t)
            if n != t: p.write_text(n, encoding="utf-8")
DROPPED = {}
main()
