import { calls } from "./cases/Calls.ts"
import { control, uncontrolled } from "./cases/Control.ts"
import { testGroup } from "./PythonCase.ts"

testGroup(calls)
testGroup(control)
testGroup(uncontrolled)
