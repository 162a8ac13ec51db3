/** The message of a thrown value: that of an Error, or the value itself as a string. */
export const errorMessage = (error: unknown): string => (error instanceof Error ? error.message : String(error))
