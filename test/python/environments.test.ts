import { environments } from "./cases/Environments.ts"
import { testGroup } from "./PythonCase.ts"

testGroup(environments)
