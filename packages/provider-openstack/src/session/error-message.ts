const LONGEST = 300;

/** First line of webob's plain text. */
const STATUS_LINE = /^\s*[45]\d\d [a-z' -]+\n/i;

const ENTITIES: Readonly<Record<string, string>> = {
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
  amp: '&',
};

/**
 * Error message in the body of an answer, as one line without markup. Keystone and Nova wrap it in JSON; Glance sends
 * JSON, HTML or plain text; Swift and proxies send HTML or plain text.
 */
export function errorMessage(body: string, secrets: readonly string[] = []): string {
  const plain = withoutMarkup(messageOf(body) ?? body)
    .replace(STATUS_LINE, '')
    .replaceAll(/\s+/g, ' ')
    .trim();
  const message = withoutSecrets(plain, secrets);
  return message.length > LONGEST ? `${message.slice(0, LONGEST)}…` : message;
}

function messageOf(body: string): string | undefined {
  try {
    return findMessage(JSON.parse(body));
  } catch {
    return undefined;
  }
}

function findMessage(value: unknown): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  if ('message' in value && typeof value.message === 'string') return value.message;
  return Object.values(value).map(findMessage).find(Boolean);
}

function withoutMarkup(text: string): string {
  return text
    .replaceAll(/<(head|style|script|title|h1)\b[\s\S]*?<\/\1>/gi, ' ')
    .replaceAll(/<\/?[a-z][^>]*>/gi, ' ')
    .replaceAll(/&(?:#(\d{1,5})|#x([\da-f]{1,4})|(\w+));/gi, (whole, decimal, hexadecimal, name) => {
      if (name !== undefined) return ENTITIES[name] ?? whole;
      return String.fromCharCode(decimal ?? Number.parseInt(hexadecimal, 16));
    });
}

/** A cloud may echo secrets of the request: tokens, passwords, and URLs with a signature in the query. */
function withoutSecrets(text: string, secrets: readonly string[]): string {
  const known = secrets.filter((secret) => secret !== '');
  return known
    .reduce((rest, secret) => rest.replaceAll(secret, '…'), text)
    .replaceAll(/(https?:\/\/)[^\s/@"'<>]*@/gi, '$1')
    .replaceAll(/(https?:\/\/[^\s?"'<>]+)\?[^\s"'<>]*/gi, '$1?…');
}
