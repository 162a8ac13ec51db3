import { requests } from "./cases/Requests.ts"
import { testGroup } from "./PythonCase.ts"

testGroup(requests)
