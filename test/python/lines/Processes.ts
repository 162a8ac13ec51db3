/** Lines of detection, import and processes. */
import { local, wired } from "./PythonLine.ts"

export const processes = [
  ...wired({
    "P1.detect.backend": '`backend: "python"` selects the backend',
    "P1.detect.file": "so does a `model.py` in the version directory, without a backend, a platform and a file name",
    "P1.detect.name": 'so does `default_model_filename: "model.py"` without a backend',
    "P1.file.default": "the file is `<repository>/<model>/<version>/<default_model_filename>`",
    "P1.file.suffix": "its name must end in .py",
    "P1.file.missing": "a missing file fails the load, and the text has its path",
    "P1.file.missing-strict": "also without auto-completion",
    "P1.file.class": "the class must be TritonPythonModel",
    "P1.import.name": "the module is `<version>.<stem>`",
    "P1.import.path":
      "the path has the version directory, the model directory and that of the API (Triton: at its end; here: before them)",
    "P1.import.absolute": "files beside the code are imported by name",
    "P1.import.relative": "and relatively",
    "P1.import.again": "`import model` loads the file a second time",
    "P1.process.each": "each instance is a process",
    "P1.process.default": "an instance by default",
    "P1.process.parallel": "instances load at the same time",
    "P1.process.shared": "and share nothing",
    "P1.process.directory": "the process has the working directory of the server",
    "P1.process.environment":
      "variables of the environment reach it (Triton: all; here: those of a list, and named ones)",
  }),
  ...local("the names exist in the module, whoever calls the model", {
    "P1.api.names": "triton_python_backend_utils has the native classes, functions and constants",
    "P1.api.native": "c_python_backend_utils has them too, and the classes that models only receive",
  }),
  ...local("signals and the end of the server reach the process, and no client", {
    "P1.signal.ignored": "SIGINT and SIGTERM of a terminal are ignored",
    "P1.orphan.ends": "the process ends with its server, without finalize",
    "P1.orphan.native": "also in native code that holds the lock of Python",
  }),
  ...local("printed text goes to the log", {
    "P1.output.lines": "standard output and error arrive (Triton: as they are; here: as lines of the log)",
  }),
]
