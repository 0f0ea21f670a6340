"""Name nodes that mean a module's own global."""
from __future__ import annotations
import ast

def bound_in(body_nodes):
    """Names bound in a function body, nested scopes left out; minus global/nonlocal."""
    bound, outer = set(), set()
    def visit(n):
        if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            bound.add(n.name)
            for d in n.decorator_list: visit(d)
            return
        if isinstance(n, ast.Lambda): return
        if isinstance(n, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            # walrus inside binds outside
            for k in ast.walk(n):
                if isinstance(k, ast.NamedExpr): bound.add(k.target.id)
            return
        if isinstance(n, ast.Name) and isinstance(n.ctx, (ast.Store, ast.Del)): bound.add(n.id)
        if isinstance(n, (ast.Import, ast.ImportFrom)):
            for a in n.names: bound.add((a.asname or a.name).split(".")[0])
        if isinstance(n, ast.ExceptHandler) and n.name: bound.add(n.name)
        if isinstance(n, (ast.Global, ast.Nonlocal)): outer.update(n.names)
        if isinstance(n, ast.MatchAs) and n.name: bound.add(n.name)
        if isinstance(n, ast.MatchStar) and n.name: bound.add(n.name)
        if isinstance(n, ast.MatchMapping) and n.rest: bound.add(n.rest)
        for k in ast.iter_child_nodes(n): visit(k)
    for n in body_nodes: visit(n)
    return bound - outer

def args_of(a: ast.arguments):
    return {x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs, *( [a.vararg] if a.vararg else []), *([a.kwarg] if a.kwarg else []))}

def global_names(tree):
    """Yield (node, name, kind): kind is 'name' (ast.Name), 'def' (def/class at top level)."""
    out = []
    def expr(n, scopes):
        if n is None: return
        if isinstance(n, ast.Name):
            if not any(n.id in s for s in scopes): out.append((n, n.id))
            return
        if isinstance(n, ast.Lambda):
            for d in (*n.args.defaults, *(x for x in n.args.kw_defaults if x)): expr(d, scopes)
            expr(n.body, [*scopes, args_of(n.args)]); return
        if isinstance(n, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            names = set()
            for g in n.generators:
                for k in ast.walk(g.target):
                    if isinstance(k, ast.Name): names.add(k.id)
            inner = [*scopes, names]
            expr(n.generators[0].iter, scopes)
            for i, g in enumerate(n.generators):
                if i: expr(g.iter, inner)
                for c in g.ifs: expr(c, inner)
            if isinstance(n, ast.DictComp): expr(n.key, inner); expr(n.value, inner)
            else: expr(n.elt, inner)
            return
        stmt_or_child(n, scopes)
    def func(n, scopes):
        for d in n.decorator_list: expr(d, scopes)
        a = n.args
        for d in (*a.defaults, *(x for x in a.kw_defaults if x)): expr(d, scopes)
        for x in (*a.posonlyargs, *a.args, *a.kwonlyargs, *( [a.vararg] if a.vararg else []), *([a.kwarg] if a.kwarg else [])):
            expr(x.annotation, scopes)
        expr(n.returns, scopes)
        tp = {t.name for t in getattr(n, "type_params", [])}
        # class scopes are not seen from functions within them
        outer = [s for s in scopes if not isinstance(s, ClassScope)]
        loc = args_of(a) | bound_in(n.body) | tp
        for k in n.body: stmt(k, [*outer, loc])
    def cls(n, scopes):
        for d in n.decorator_list: expr(d, scopes)
        for b in n.bases: expr(b, scopes)
        for k in n.keywords: expr(k.value, scopes)
        loc = ClassScope(bound_in(n.body))
        # a class attribute of the same name as a global: before it is bound the global is read; take globals as seen
        for k in n.body: stmt(k, [*scopes, loc])
    def stmt(n, scopes):
        if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if not scopes: out.append((n, n.name))
            func(n, scopes)
        elif isinstance(n, ast.ClassDef):
            if not scopes: out.append((n, n.name))
            cls(n, scopes)
        elif isinstance(n, (ast.Import, ast.ImportFrom)): pass
        else: stmt_or_child(n, scopes)
    def stmt_or_child(n, scopes):
        if isinstance(n, (ast.MatchAs, ast.MatchStar)) and getattr(n, "name", None) and not scopes: pass
        for k in ast.iter_child_nodes(n):
            if isinstance(k, ast.stmt): stmt(k, scopes)
            elif isinstance(k, ast.expr): expr(k, scopes)
            else: expr_container(k, scopes)
    def expr_container(k, scopes):
        if isinstance(k, (ast.expr_context, ast.operator, ast.boolop, ast.cmpop, ast.unaryop)): return
        for x in ast.iter_child_nodes(k):
            if isinstance(x, ast.stmt): stmt(x, scopes)
            elif isinstance(x, ast.expr): expr(x, scopes)
            else: expr_container(x, scopes)
    for n in tree.body: stmt(n, [])
    return out

class ClassScope(set):
    pass

def import_time_names(node):
    """Names read when a top-level statement runs: not those in function bodies."""
    names = set()
    def visit(n):
        if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for d in n.decorator_list: visit(d)
            for d in (*n.args.defaults, *(x for x in n.args.kw_defaults if x)): visit(d)
            if n.decorator_list:   # typer and MCP read annotations of commands when they are decorated
                for x in (*n.args.posonlyargs, *n.args.args, *n.args.kwonlyargs):
                    if x.annotation: visit(x.annotation)
            return
        if isinstance(n, ast.Lambda): return
        if isinstance(n, ast.Name): names.add(n.id)
        for k in ast.iter_child_nodes(n): visit(k)
    visit(node)
    return names
