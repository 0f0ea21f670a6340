#!/bin/bash
# run.sh DIR : whole move in a clean worktree
set -e
cd $1
PREFIX=kinodex. python3 /work/wt/mover/emit.py . /work/wt/mover/map.txt /work/wt/mover/renames.tsv
python3 /work/wt/mover/finish.py .
.venv/bin/ruff check --fix-only -q --select I,F401,F811 pipeline index agent jobs kinodex tests docs || true
.venv/bin/ruff format -q .
.venv/bin/ruff check . --statistics || true
