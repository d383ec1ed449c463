/** What an image can be fetched from. */
const SCHEMES: readonly string[] = ['http:', 'https:', 's3:'];

/**
 * The absolute URL of an artifact. Zuul joins a relative one to the build's `log_url` before it is stored, but
 * passes it on as it is where there was none at that time.
 *
 * @throws Error with the reason, for a URL that leads nowhere; never with the query, which may be a signature.
 */
export function artifactUrl(url: string, logUrl: string | undefined): string {
  const absolute = URL.parse(url) ?? joined(url, logUrl);
  if (!SCHEMES.includes(absolute.protocol)) {
    throw new Error(`its URL begins with ${absolute.protocol}, and not with http:, https: or s3:`);
  }
  if (absolute.username !== '' || absolute.password !== '')
    throw new Error('its URL holds a user or a password');
  return absolute.href;
}

/** A URL without its query, which may be a signature, and without its fragment: for messages, and to compare. */
export function withoutQuery(url: string): string {
  return url.split(/[?#]/, 1)[0] as string;
}

function joined(url: string, logUrl: string | undefined): URL {
  if (logUrl === undefined) throw new Error('its URL is relative, and the build has no log_url');
  // the logs of a build are a directory, whether or not its URL says so
  const base = `${withoutQuery(logUrl).replace(/(?<!\/)\/*$/, '')}/`;
  const absolute = URL.parse(url, base);
  if (absolute === null) throw new Error('its URL cannot be read');
  return absolute;
}
