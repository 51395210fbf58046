"""`python -m maskwright.cli`, which is `maskwright`."""

from __future__ import annotations

from maskwright.cli.commands import main

raise SystemExit(main())
