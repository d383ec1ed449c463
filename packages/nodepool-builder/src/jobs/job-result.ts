/** The payload of WORK_COMPLETE, to the byte as Python's `json.dumps` writes it. */
export function jobResult(key: 'image-id' | 'external-id', value: string): string {
  const text = JSON.stringify(value).replace(
    /[^ -~]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
  return `{"${key}": ${text}}`;
}
