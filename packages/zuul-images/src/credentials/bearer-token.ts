import { ZuulError } from '../api/zuul-error.ts';

/** What a header takes (RFC 6750, 2.1). */
const TOKEN = /^[\w.~+/-]+=*$/;

/**
 * The token in what a file or a command gave; `zuul-admin create-auth-token` writes `Bearer` before it.
 *
 * @param source names the file or the command in the message
 * @throws ZuulError `credentials-unusable`; the message does not quote what was read
 */
export function bearerToken(text: string, source: string): string {
  const token = text.trim().replace(/^bearer\s+/i, '');
  if (TOKEN.test(token)) return token;
  const fault = token === '' ? 'gives no token' : 'gives something that is no bearer token';
  throw new ZuulError('credentials-unusable', `${source} ${fault}; it must give the token and nothing else`);
}
