/**
 * Whether a redirection leads to where a token may be sent: the same host and port, or from `http://host/` to
 * `https://host/`.
 */
export function staysWithHost(from: string, location: string): boolean {
  const to = URL.parse(location, from);
  if (to === null) return false;
  const { protocol, hostname, port, origin } = new URL(from);
  const isSaferLine = protocol === 'http:' && port === '' && to.origin === `https://${hostname}`;
  return to.origin === origin || isSaferLine;
}
