/** Options whose exact type a layer's types follow from. A name that the options do not have is a compile error. */
export type GivenOptions<Options, Known> = Options & { readonly [K in Exclude<keyof Options, keyof Known>]: never }
