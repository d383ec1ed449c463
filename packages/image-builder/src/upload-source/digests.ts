/** Supported digests by OpenSSL's name, with the relative time for a byte. */
export const DIGESTS = {
  md5: { cost: 2 },
  sha256: { cost: 1 },
  sha512: { cost: 2 },
} as const;
DIGESTS satisfies Record<string, { readonly cost: number }>;

/** Name of a message digest. */
export type DigestName = keyof typeof DIGESTS;

/** Hexadecimal digests of a file, by name. */
export type Digests<Name extends DigestName = DigestName> = Readonly<Record<Name, string>>;

/** Digests the bytes that its user writes to its memory. */
export interface Digester {
  readonly memory: ArrayBufferLike;
  /** Digests a range of the memory as the next bytes of the file. Fulfilled when the range can be reused; never rejected. */
  update(bytes: Range): Promise<void>;
  /** Returns the digests of all bytes. Rejected with the first error so far. */
  digest(): Promise<Digests>;
  /** Releases all resources, including the memory. */
  close(): Promise<void>;
}

/** A part of a memory, without its end. */
export interface Range {
  readonly begin: number;
  readonly end: number;
}
