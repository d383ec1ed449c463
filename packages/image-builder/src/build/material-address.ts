/** Query parameters that contain a secret: signatures and tokens of object stores, and others. */
const SECRET_PARAMETER = /sig|token|password|secret|credential|auth|key/i;

/**
 * Removes credentials from an address: a user with a password before the host, and parameters of signed requests. A
 * user without a password stays, because for SSH it is not a secret.
 */
export function stripCredentials(uri: string): string {
  const [scheme, rest] = split(uri, '://');
  if (rest === undefined) return uri; // such as user@host:path, which has no password
  const end = rest.search(/[/?#]/);
  const authority = end === -1 ? rest : rest.slice(0, end);
  const path = end === -1 ? '' : rest.slice(end);
  const at = authority.lastIndexOf('@');
  const user = authority.slice(0, Math.max(at, 0)).split(':')[0] ?? '';
  const keptUser = /(?:^|\+)ssh$/.test(scheme) && user !== '' ? `${user}@` : '';
  return `${scheme}://${keptUser}${authority.slice(at + 1)}${withoutSecretParameters(path)}`;
}

/**
 * Finds the credentials in the addresses of a text: users with their passwords, passwords, and parameters of signed
 * requests.
 */
export function credentialsIn(text: string): string[] {
  const uris = text.split(/[\s"'<>]+/).filter((word) => word.includes('://'));
  return uris.flatMap((uri) => {
    const [scheme, rest = ''] = split(uri, '://');
    const [address, query = ''] = split(split(rest, '#')[0], '?');
    const [authority] = split(address, '/');
    const user = authority.slice(0, Math.max(authority.lastIndexOf('@'), 0));
    const [, password] = split(user, ':');
    const isSecret = password === undefined ? !/\bssh$/.test(scheme) : password !== '';
    const parameters = query.split('&').map((parameter) => split(parameter, '='));
    return [
      ...(isSecret ? [user, ...(password === undefined ? [] : [password])] : []),
      ...parameters.flatMap(([name, value]) =>
        value !== undefined && SECRET_PARAMETER.test(name) ? [value] : [],
      ),
    ].filter((secret) => secret !== '');
  });
}

/** Replaces the credentials in the addresses of a text with `***`, regardless of their length. */
export function maskCredentials(text: string): string {
  return credentialsIn(text).reduce(
    (shown, secret) => shown.replaceAll(`://${secret}@`, '://***@').replaceAll(`=${secret}`, '=***'),
    text,
  );
}

function withoutSecretParameters(path: string): string {
  const [before, query] = split(path, '?');
  if (query === undefined) return path;
  const [parameters, fragment] = split(query, '#');
  const kept = parameters
    .split('&')
    .filter((parameter) => !SECRET_PARAMETER.test(parameter.split('=')[0] ?? ''));
  const tail = fragment === undefined ? '' : `#${fragment}`;
  return `${before}${kept.length > 0 ? `?${kept.join('&')}` : ''}${tail}`;
}

function split(text: string, separator: string): [string, string?] {
  const index = text.indexOf(separator);
  return index === -1 ? [text] : [text.slice(0, index), text.slice(index + separator.length)];
}
