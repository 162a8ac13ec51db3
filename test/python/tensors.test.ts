import { tensors } from "./cases/Tensors.ts"
import { testGroup } from "./PythonCase.ts"

testGroup(tensors)
