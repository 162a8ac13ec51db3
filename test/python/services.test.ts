import { services } from "./cases/Services.ts"
import { testGroup } from "./PythonCase.ts"

testGroup(services)
