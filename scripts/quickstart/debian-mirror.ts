/** apt-get arguments that print one line per Packages index, as input for {@link debianFromApt}. */
export const INDEX_TARGETS_ARGUMENTS: readonly string[] = [
  'indextargets',
  '--format',
  '$(REPO_URI) $(CODENAME) $(COMPONENT) $(LABEL)',
  'Created-By: Packages',
];

/** A Debian release and the locations of its archives. */
export interface DebianMirror {
  /** Code name, such as `bookworm`. */
  readonly release: string;
  readonly main: string;
  readonly security: string;
}

/** Debian's own archives. */
const PUBLIC: DebianMirror = {
  release: 'stable',
  main: 'http://deb.debian.org/debian',
  security: 'http://deb.debian.org/debian-security',
};

/**
 * Finds this machine's Debian release and mirror in apt's configuration. Defaults to Debian's own archives.
 *
 * @param indexTargets - output of apt-get with {@link INDEX_TARGETS_ARGUMENTS}
 * @param readMirrorList - reads the file that a `mirror+file:` source names, as on Debian's cloud images
 */
export function debianFromApt(indexTargets: string, readMirrorList: (path: string) => string): DebianMirror {
  const targets = indexTargets
    .split('\n')
    .map((line) => /^(\S+) (\S+) main (Debian(?:-Security)?)$/.exec(line)?.slice(1))
    .filter((fields) => fields !== undefined)
    .map(([uri = '', codename = '', label]) => ({ uri: httpUri(uri, readMirrorList), codename, label }));
  // Updates and similar archives have the same label, but a suffix in their code name.
  const base = targets.find(
    ({ uri, codename, label }) => label === 'Debian' && !codename.includes('-') && uri !== undefined,
  );
  if (base?.uri === undefined) return PUBLIC;
  const { codename: release, uri: main } = base;
  const security = targets.find(({ codename }) => codename === `${release}-security`)?.uri;
  return { release, main, security: security ?? PUBLIC.security };
}

/** Returns the mirror's URL for a file of Debian's own hosts; other URLs are returned unchanged. */
export function atMirror(url: string, { main, security }: DebianMirror): string {
  const [, host, archive, path = ''] =
    /^http:\/\/(deb|security)\.debian\.org\/(?:(debian|debian-security)\/)?(.*)$/.exec(url) ?? [];
  if (host === 'security' || archive === 'debian-security') return `${security}/${path}`;
  return archive === 'debian' ? `${main}/${path}` : url;
}

/** Returns the URL of a repository that is reached over HTTP; undefined otherwise (`cdrom:`, `file:`). */
function httpUri(uri: string, readMirrorList: (path: string) => string): string | undefined {
  const listPath = /^mirror\+file:(\/.*?)\/*$/.exec(uri)?.[1];
  const candidates = listPath === undefined ? [uri] : readMirrorList(listPath).split('\n');
  return candidates.map((candidate) => /^https?:\S+?(?=\/*(?:\s|$))/.exec(candidate)?.[0]).find(Boolean);
}
