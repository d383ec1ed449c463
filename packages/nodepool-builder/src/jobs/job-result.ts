/**
 * The payload of WORK_COMPLETE, to the byte as Python's `json.dumps` writes it.
 *
 * @param checksum for our own clients that asked for it
 */
export function jobResult(key: 'image-id' | 'external-id', value: string, checksum?: string): string {
  const more = checksum === undefined ? '' : `, "checksum": ${asPythonWrites(checksum)}`;
  return `{"${key}": ${asPythonWrites(value)}${more}}`;
}

function asPythonWrites(text: string): string {
  return JSON.stringify(text).replace(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
