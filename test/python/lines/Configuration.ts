/** Lines of the configuration: environments, settings, backends in Python. */
import { local, wired } from "./PythonLine.ts"

export const configuration = [
  ...wired({
    "P4.env.folder": "EXECUTION_ENV_PATH: a folder with bin/activate",
    "P4.env.archive": "or an archive of conda-pack",
    "P4.env.directory": "`$$TRITON_MODEL_DIRECTORY` stands for the directory of the model",
    "P4.env.relative": "another relative path is not below the directory of the model",
    "P4.env.activate": "`Path <p>/bin/activate does not exist. …`",
    "P4.env.absent": "`Failed to get the canonical path for <p>.`",
    "P4.env.variables": "VIRTUAL_ENV, PATH and LD_LIBRARY_PATH are set, PYTHONHOME is removed",
    "P4.env.log": "`Using Python execution env <p>`",
    "P4.cpu-only": "FORCE_CPU_ONLY_INPUT_TENSORS: `yes` or `no`, without an effect on CPUs",
    "P4.cpu-only.wrong": "`Incorrect value for FORCE_CPU_ONLY_INPUT_TENSORS: x'`",
    "P4.backend.models": "a model.py of the backend directory serves all models that name its folder",
    "P4.backend.env": "with the archive beside it",
    "P4.backend.directory": "get_model_dir() is the version directory of the model",
  }),
  ...local("archives are unpacked before the process starts", {
    "P4.archive.once": "an archive is unpacked once, for all models",
    "P4.archive.again": "again when it has changed",
    "P4.archive.parent": "`Path contains '..'`",
    "P4.archive.absolute": "`Path is absolute`",
    "P4.archive.links": "nothing is written through its links",
  }),
  ...local("flags of the command", {
    "P4.flags": "`--backend-config=python,…` takes Triton's settings; those of shared memory have no effect",
    "P4.flags.threads": "thread-pool-size is how many calls a process makes at once",
  }),
]
