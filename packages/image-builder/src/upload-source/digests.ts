/** What a file can be digested with, by OpenSSL's name, and how much time a byte takes, relative to the others. */
export const DIGESTS = {
  md5: { cost: 2 },
  sha256: { cost: 1 },
  sha512: { cost: 2 },
} as const;
DIGESTS satisfies Record<string, { readonly cost: number }>;

/** The name of a message digest. */
export type DigestName = keyof typeof DIGESTS;

/** Hexadecimal digests of a file, by their names. */
export type Digests<Name extends DigestName = DigestName> = Readonly<Record<Name, string>>;

/** Digests what its user puts into its memory. */
export interface Digester {
  readonly memory: ArrayBufferLike;
  /** Takes bytes of the memory for the next ones of the file. Ends when they are no longer needed, and never fails. */
  update(bytes: Range): Promise<void>;
  /** The digests of all that it took. Throws what went wrong up to now. */
  digest(): Promise<Digests>;
  /** Gives free what it uses, memory included, once it needs none of that. */
  close(): Promise<void>;
}

/** A part of a memory, its end not included. */
export interface Range {
  readonly begin: number;
  readonly end: number;
}
