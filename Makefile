# One line each, no logic: scripts/dev.py makes the environment and runs the thing.
# Pass more on with ARGS, as in:  make test ARGS="plugins/whileai-verify -k math"
PYTHON ?= python3
DEV = $(PYTHON) scripts/dev.py

.PHONY: demo test test-integrations check docs bench wheels
demo:   ; @$(DEV) demo $(ARGS)
test:   ; @$(DEV) test $(ARGS)
test-integrations: ; @$(DEV) integrations $(ARGS)
check:  ; @$(DEV) check $(ARGS)
docs:   ; @$(DEV) docs $(ARGS)
bench:  ; @$(DEV) bench $(ARGS)
wheels: ; @$(DEV) wheels $(ARGS)
