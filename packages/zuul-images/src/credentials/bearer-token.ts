import { CloudError } from '@nodepool-builder/image-builder/plugin';

/** Syntax of a bearer token (RFC 6750, 2.1). */
const TOKEN = /^[\w.~+/-]+=*$/;

/**
 * Returns the token in a text. `zuul-admin create-auth-token` writes `Bearer` before it.
 *
 * @param source subject of the message, such as a file
 * @throws CloudError `credentials-unusable`; the message does not quote the text
 */
export function bearerToken(text: string, source: string): string {
  const token = text.trim().replace(/^bearer\s+/i, '');
  if (TOKEN.test(token)) return token;
  const reason = token === '' ? 'contains no token' : 'contains other text than a bearer token';
  throw new CloudError('credentials-unusable', `${source} ${reason}; correct it`);
}
