from tigranet import __version__


def test_the_module_is_the_command(warm_process):
    code = "import runpy; runpy.run_module('tigranet', run_name='__main__')"
    finished = warm_process.run(code, "--version")
    assert (finished.returncode, finished.stdout) == (0, f"tigranet {__version__}\n")
    finished = warm_process.run(code, "nosuch")
    assert finished.returncode == 2
    assert "Usage: tigranet" in finished.stderr
