/** When a signed URL ends to be good, by the parameters of its query; one row for each way of signing. */
const EXPIRIES: readonly ((query: URLSearchParams) => number)[] = [
  // Amazon's signature 4, and Google's copy of it
  (query) => basicTime(query.get('X-Amz-Date')) + seconds(query.get('X-Amz-Expires')),
  (query) => basicTime(query.get('X-Goog-Date')) + seconds(query.get('X-Goog-Expires')),
  // Amazon's signature 2
  (query) => (query.has('Signature') ? seconds(query.get('Expires')) : Number.NaN),
  // Swift's temporary URLs: seconds since 1970, or ISO 8601
  (query) => timeOf(query.get('temp_url_expires')),
  // Azure's shared access signatures
  (query) => timeOf(query.get('se')),
];

/** Whether the URL is signed for a time that is over. */
export function isOver({ searchParams }: URL, now: number): boolean {
  return EXPIRIES.some((expiry) => expiry(searchParams) <= now);
}

function seconds(text: string | null): number {
  return text !== null && /^\d+$/.test(text) ? Number(text) * 1000 : Number.NaN;
}

function timeOf(text: string | null): number {
  return text === null || /^\d+$/.test(text) ? seconds(text) : Date.parse(text);
}

/** `20130524T000000Z`, which Date does not read. */
function basicTime(text: string | null): number {
  return Date.parse((text ?? '').replace(/^(\d{4})(\d\d)(\d\dT\d\d)(\d\d)(\d\dZ)$/, '$1-$2-$3:$4:$5'));
}
