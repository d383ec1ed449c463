/** Arguments of apt-get that print what {@link debianFromApt} reads: a line for each Packages index. */
export const INDEX_TARGETS_ARGUMENTS: readonly string[] = [
  'indextargets',
  '--format',
  '$(REPO_URI) $(CODENAME) $(COMPONENT) $(LABEL)',
  'Created-By: Packages',
];

/** A Debian that diskimage-builder can make from the mirror that this machine's apt uses. */
export interface AvailableDebian {
  /** The code name, such as `bookworm`. */
  readonly release: string;
  /** The mirror of its main archive. */
  readonly mirror: string;
  /** Environment for diskimage-builder's element `debian-minimal`. */
  readonly envVars: Readonly<Record<string, string>>;
}

/**
 * Finds a Debian in apt's configuration. This machine can reach that mirror. The security archive is set too:
 * diskimage-builder's default is another host, and up to 3.13 a suite that no longer exists since Debian 11.
 *
 * @param indexTargets - output of apt-get with {@link INDEX_TARGETS_ARGUMENTS}
 * @param readMirrorList - reads the file that a `mirror+file:` source names, as on Debian's cloud images
 * @throws Error if apt serves no Debian over HTTP; the message says what to do.
 */
export function debianFromApt(
  indexTargets: string,
  readMirrorList: (path: string) => string,
): AvailableDebian {
  const targets = indexTargets
    .split('\n')
    .map((line) => /^(\S+) (\S+) main (Debian(?:-Security)?)$/.exec(line)?.slice(1))
    .filter((fields) => fields !== undefined)
    .map(([uri = '', codename = '', label]) => ({ uri: httpUri(uri, readMirrorList), codename, label }));
  // Updates and the like carry the same label; their code name has a suffix.
  const base = targets.find(
    ({ uri, codename, label }) => label === 'Debian' && !codename.includes('-') && uri !== undefined,
  );
  if (base?.uri === undefined) {
    throw new Error(
      'apt on this machine knows no Debian archive that is reached over HTTP. On Debian run apt-get update; ' +
        'elsewhere set DIB_RELEASE, DIB_DISTRIBUTION_MIRROR and DIB_APT_SOURCES_CONF, ' +
        'which diskimage-builder documents, and run the same again',
    );
  }
  const { codename: release, uri: mirror } = base;
  const source = (name: string, codename: string): string[] => {
    const uri = targets.find((target) => target.codename === codename)?.uri;
    return uri === undefined ? [] : [`${name}:deb ${uri} ${codename} main`];
  };
  const sources = [
    ...source('default', release),
    ...source('updates', `${release}-updates`),
    ...source('security', `${release}-security`),
  ].join('\n');
  // With initramfs-tools installed before the kernel, the initrd is made once, not twice. zstd packs it faster.
  const include = ['zstd', 'initramfs-tools'];
  if (sources.includes('https:')) include.push('ca-certificates'); // Debian's smallest system trusts no authority
  return {
    release,
    mirror,
    envVars: {
      DIB_DISTRIBUTION_MIRROR: mirror,
      DIB_APT_SOURCES_CONF: sources,
      DIB_DEBOOTSTRAP_EXTRA_ARGS: `--include=${include.join()}`,
    },
  };
}

/** A repository's address if it can be reached from inside an image; undefined otherwise (`cdrom:`, `file:`). */
function httpUri(uri: string, readMirrorList: (path: string) => string): string | undefined {
  const listPath = /^mirror\+file:(\/.*?)\/*$/.exec(uri)?.[1];
  const candidates = listPath === undefined ? [uri] : readMirrorList(listPath).split('\n');
  return candidates.map((candidate) => /^https?:\S+?(?=\/*(?:\s|$))/.exec(candidate)?.[0]).find(Boolean);
}
