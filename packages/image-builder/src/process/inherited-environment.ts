/** Variables of a process. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Variables that name a directory for temporary files. mktemp and most programs prefer the first. */
export const TEMPORARY_VARIABLES: readonly string[] = ['TMPDIR', 'TMP_DIR', 'TMP', 'TEMP'];

/** Variables of this process that commands inherit. A trailing `*` matches any suffix. */
export const INHERITED_VARIABLES: readonly { readonly purpose: string; readonly names: readonly string[] }[] =
  [
    { purpose: 'user and terminal', names: ['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'TERM'] },
    { purpose: 'locale and time zone', names: ['LANG', 'LANGUAGE', 'LC_*', 'TZ'] },
    { purpose: 'temporary files', names: TEMPORARY_VARIABLES },
    {
      purpose: 'directories of the user',
      names: ['XDG_CACHE_HOME', 'XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'XDG_RUNTIME_DIR'],
    },
    {
      purpose: 'proxies',
      names: ['http', 'https', 'ftp', 'rsync', 'all', 'no']
        .map((scheme) => `${scheme}_proxy`)
        .flatMap((name) => [name, name.toUpperCase()]),
    },
    {
      purpose: 'certificate authorities',
      names: ['SSL_CERT_FILE', 'SSL_CERT_DIR', 'CURL_CA_BUNDLE', 'REQUESTS_CA_BUNDLE', 'GIT_SSL_CAINFO'],
    },
    {
      purpose: 'libraries',
      names: ['LD_LIBRARY_PATH', 'PYTHONPATH', 'PYTHONHOME', 'PYTHONUNBUFFERED', 'VIRTUAL_ENV'],
    },
    {
      purpose: 'diskimage-builder and its elements',
      names: [
        'DIB_*',
        'ELEMENTS_PATH',
        'ACI_MANIFEST',
        'ARCH',
        'BASE_IMAGE_FILE',
        'BASE_IMAGE_FILE_SUFFIX',
        'DISTRO_NAME',
        'FS_TYPE',
        'GENTOO_*',
        'GRUB_OPTS',
        'IMAGE_NAME',
        'IMAGE_TYPE',
        'NO_SOURCE_REPOSITORIES',
        'OVERWRITE_OLD_IMAGE',
        'UBOOT_KERNEL_*',
        'YUM',
      ],
    },
    { purpose: "nodepool's scripts", names: ['NODEPOOL_*'] },
  ];

const INHERITED: readonly string[] = INHERITED_VARIABLES.flatMap(({ names }) => names);

/**
 * Selects the variables that commands inherit: {@link INHERITED_VARIABLES} and those in `also`. The environment of a
 * daemon contains secrets that no command needs, and the output of commands is kept in a log.
 */
export function inheritedEnvironment(
  environment: Environment = process.env,
  also: readonly string[] = [],
): Record<string, string> {
  const patterns = [...INHERITED, ...also];
  return Object.fromEntries(
    Object.entries(environment).filter(
      (entry): entry is [string, string] => entry[1] !== undefined && matchesVariable(entry[0], patterns),
    ),
  );
}

/** Returns the environment of a program whose temporary files are created in a directory, and removed with it. */
export function environmentIn(directory: string): Record<string, string> {
  const temporary = TEMPORARY_VARIABLES.map((name) => [name, directory]);
  return { ...inheritedEnvironment(), ...Object.fromEntries(temporary) };
}

export function withheldVariables(environment: Environment, all: Environment = process.env): string[] {
  return Object.keys(all)
    .filter((name) => environment[name] === undefined)
    .toSorted();
}

/** Returns whether a variable has one of these names. A trailing `*` matches any suffix. */
export function matchesVariable(name: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) =>
    pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern,
  );
}
