const LONGEST = 300;

/** webob's plain text begins with it. */
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
 * What a cloud says in the body of an answer, as one line without mark-up: Keystone and Nova wrap a message in JSON,
 * Glance answers in JSON, HTML or plain text as webob makes them, Swift and proxies in HTML or plain text.
 */
export function cloudWords(body: string, secrets: readonly string[] = []): string {
  const plain = withoutMarkup(messageOf(body) ?? body)
    .replace(STATUS_LINE, '')
    .replaceAll(/\s+/g, ' ')
    .trim();
  const words = withoutSecrets(plain, secrets);
  return words.length > LONGEST ? `${words.slice(0, LONGEST)}…` : words;
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

/** A cloud may echo what it was sent: tokens, passwords, and URLs whose query is a signature. */
function withoutSecrets(text: string, secrets: readonly string[]): string {
  const known = secrets.filter((secret) => secret !== '');
  return known
    .reduce((rest, secret) => rest.replaceAll(secret, '…'), text)
    .replaceAll(/(https?:\/\/)[^\s/@"'<>]*@/gi, '$1')
    .replaceAll(/(https?:\/\/[^\s?"'<>]+)\?[^\s"'<>]*/gi, '$1?…');
}
