"""What every test may rely on."""

import signal

# A shell starts background jobs with Ctrl-C ignored, and children inherit that; the tests that interrupt work
# need it heard.
signal.signal(signal.SIGINT, signal.default_int_handler)
