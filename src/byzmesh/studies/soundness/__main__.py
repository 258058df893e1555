"""`python -m byzmesh.studies.soundness COUNT FOLDER REVISION`: the study in a folder; exit code 1 if anything broke."""

import sys

from byzmesh.studies.soundness.report import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
