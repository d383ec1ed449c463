import { JsonReader } from '@nodepool-builder/image-builder/plugin';

/** Keys of a result that only our own clients request. */
interface FurtherResults {
  readonly checksum?: string | undefined;
  /** Bundles of sigstore. */
  readonly attestations?: readonly string[] | undefined;
  /** Package list, in gzip and base64. */
  readonly packages?: string | undefined;
}

/** Formats the result of an `image-build` or `image-upload` job, byte for byte as Python's `json.dumps` does. */
export function encodeResult(
  key: 'image-id' | 'external-id',
  value: string,
  { checksum, attestations, packages }: FurtherResults = {},
): string {
  const more = checksum === undefined ? '' : `, "checksum": ${asPythonWrites(checksum)}`;
  const list = attestations?.map(asPythonWrites).join(', ');
  const bundles = list === undefined ? '' : `, "attestations": [${list}]`;
  const last = packages === undefined ? '' : `, "packages": ${asPythonWrites(packages)}`;
  return `{"${key}": ${asPythonWrites(value)}${more}${bundles}${last}}`;
}

function asPythonWrites(text: string): string {
  return JSON.stringify(text).replace(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

const READER = new JsonReader({
  type: 'object',
  // Documents of any type do not make the result invalid; their reader leaves them out.
  properties: {
    checksum: { type: 'string' },
    'external-id': { type: 'string' },
    attestations: {},
    packages: {},
  },
});

/** Reads the result of a builder. An invalid result has no fields. */
export function decodeResult(result: Buffer): ReturnType<typeof READER.parse> {
  try {
    return READER.parse(result.toString('utf8'));
  } catch {
    return {};
  }
}
