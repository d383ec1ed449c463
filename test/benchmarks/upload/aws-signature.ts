import { createHash, createHmac } from 'node:crypto';

/** Key that signs requests to an AWS service. */
export interface AwsKey {
  readonly id: string;
  readonly secret: string;
  readonly region: string;
  readonly service: string;
}

/**
 * Returns the headers of a signed request without a query (AWS Signature Version 4).
 *
 * @param digest SHA-256 of the body, in hexadecimal digits
 * @param headers further signed headers, in lower case
 */
export function signedHeaders(
  { id, secret, region, service }: AwsKey,
  { method, url, digest }: { readonly method: string; readonly url: URL; readonly digest: string },
  headers: Readonly<Record<string, string>>,
): Record<string, string> {
  const time = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '');
  const all: Record<string, string> = {
    ...headers,
    host: url.host,
    'x-amz-content-sha256': digest,
    'x-amz-date': time,
  };
  const names = Object.keys(all).toSorted();
  const lines = names.map((name) => `${name}:${all[name]}\n`).join('');
  const request = [method, url.pathname, '', lines, names.join(';'), digest].join('\n');
  const scope = [time.slice(0, 8), region, service, 'aws4_request'];
  const text = ['AWS4-HMAC-SHA256', time, scope.join('/'), sha256(request)].join('\n');
  let key: string | Buffer = `AWS4${secret}`;
  for (const part of scope) key = createHmac('sha256', key).update(part).digest();
  const signature = createHmac('sha256', key).update(text).digest('hex');
  const credential = `Credential=${[id, ...scope].join('/')}`;
  const authorization = `AWS4-HMAC-SHA256 ${credential}, SignedHeaders=${names.join(';')}, Signature=${signature}`;
  return { ...all, authorization };
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
