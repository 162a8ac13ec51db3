import { life } from "./cases/Life.ts"
import { loads, strictLoads } from "./cases/Loads.ts"
import { testGroup } from "./PythonCase.ts"

testGroup(life)
testGroup(loads)
testGroup(strictLoads)
