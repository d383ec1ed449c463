import { MIN_SECRET_LENGTH } from '../build/mask.ts';
import { credentialsIn } from '../build/material-address.ts';
import { type Environment, INHERITED_VARIABLES, matchesVariable } from './inherited-environment.ts';

/** Variables of diskimage-builder and its elements that contain no secret. A trailing `*` matches any suffix. */
export const DIB_VARIABLES: readonly string[] = `
  APT_KEYRING APT_LOCAL_CACHE APT_MINIMAL_CREATE_INTERFACES APT_SOURCES ARM_KERNEL AVOID_PACKAGES_UPDATE
  BAREMETAL_INITRD_PATTERN BAREMETAL_KERNEL_PATTERN BLOCK_DEVICE BLOCK_DEVICE_CONFIG BOOTLOADER_DEFAULT_CMDLINE
  BOOTLOADER_SERIAL_CONSOLE BOOTLOADER_VIRTUAL_TERMINAL CHECKSUM CLOUD_IMAGES CLOUD_INIT_ALLOW_SSH_PWAUTH
  CLOUD_INIT_DATASOURCES CLOUD_INIT_ETC_HOSTS CONTAINERFILE_DOCKERFILE CONTAINERFILE_RUNTIME CONTAINER_FILE
  DEBIAN_ALT_INIT_PACKAGE DEBIAN_COMPONENTS DEBIAN_COMPONENTS_WS DEBIAN_DEBOOTSTRAP_SCRIPT DEBIAN_KEYRING
  DEBIAN_SECURITY_MIRROR DEBIAN_SECURITY_PATH DEBIAN_SECURITY_SUBPATH DEBIAN_USE_DEBOOTSTRAP_CACHE DEBOOTSTRAP_CACHE
  DEBOOTSTRAP_DEFAULT_LOCALE DEBOOTSTRAP_EXTRA_ARGS DEBUG_TRACE DEFAULT_INSTALLTYPE DEV_USER_AUTHORIZED_KEYS
  DEV_USER_PWDLESS_SUDO DEV_USER_SHELL DEV_USER_USERNAME DHCP_CLIENT DHCP_TIMEOUT DISABLE_APT_CLEANUP
  DISABLE_KERNEL_CLEANUP DISABLE_PIP_CLEANUP DISTRIBUTION_MIRROR DISTRIBUTION_MIRROR_UBUNTU_IGNORE
  DISTRIBUTION_MIRROR_UBUNTU_INSECURE DNF_MODULE_STREAMS DOCKER_IMAGE DRACUT_ENABLED_MODULES EPEL_DISABLED EPEL_MIRROR
  EXTLINUX FLAVOR GITREPOBASE GROWVOLS_ARGS GROWVOLS_DEVICE GROWVOLS_GROUP GROWVOLS_TRIGGER GRUB_TIMEOUT GZIP_BIN
  IMAGE_CACHE IMAGE_EXTRA_SIZE IMAGE_FILENAME IMAGE_NAME IMAGE_ROOT_FS_UUID IMAGE_SIZE INIT_SYSTEM INSTALLTYPE_*
  JOURNAL_SIZE KERNEL_VERSION LOCAL_CONFIG_USERNAME LOCAL_IMAGE LOCKFILES MIN_TMPFS MODPROBE_BLACKLIST MOUNTPOINTS
  NETWORK_INTERFACE_NAMES NO_PYPI_PIP NO_TIMESTAMP NO_TMPFS OFFLINE OPENSSH_SERVER_HARDENING OPENSUSE_PATTERNS
  PIP_RETRIES PYPI_MIRROR_URL PYTHON PYTHON_VERSION QUIET REG_TYPE RELEASE REPOLOCATION_* REPOREF_* REPOTYPE_*
  ROOT_FSTYPE ROOT_LABEL SHOW_IMAGE_USAGE SHOW_IMAGE_USAGE_FULL SIMPLE_INIT_NETWORKMANAGER UBUNTU_KERNEL
  UBUNTU_MIRROR_DISTS YUM_MINIMAL_CREATE_INTERFACES YUM_REPO_CONF ZYPPER_REPOS`
  .trim()
  .split(/\s+/)
  .map((name) => `DIB_${name}`);

/**
 * Variables whose values may be shown, apart from credentials in their addresses. A trailing `*` matches any suffix.
 */
const PUBLIC_VARIABLES: readonly string[] = [
  ...INHERITED_VARIABLES.flatMap(({ names }) => names).filter((name) => !name.endsWith('*')),
  'LC_*',
  'NODEPOOL_SCRIPTDIR',
  ...DIB_VARIABLES,
];

/** Matches values that cannot be secrets, and that a log contains too often to hide them. */
const ORDINARY =
  /^(?:true|false|none|null|auto|default|enabled|disabled|(?::?\/(?:bin|boot|dev|etc|home|lib|media|mnt|opt|proc|root|run|sbin|srv|sys|tmp|usr|var)(?:\/[^\s:]*)?)+)$/i;

/** Matches variables of this process whose value is a secret. */
const SECRET_NAME =
  /PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|CREDENTIAL|PRIVATE|_(?:PWD|PAT|AUTH)$|(?:API|ACCESS)_?KEY(?!_ID$)/i;
/** Matches variables whose value is the location of a secret. */
const LOCATION_NAME = /_(?:FILE|PATH|DIR|URL)$/i;

/** @param listed additional public variables */
export function isPublicVariable(name: string, listed: readonly string[] = []): boolean {
  return matchesVariable(name, PUBLIC_VARIABLES) || matchesVariable(name, listed);
}

/**
 * Returns the variables of a command whose values logs hide: all but the public ones. A value that is ordinary, or that
 * a public variable also has, is not hidden.
 *
 * @param listed additional public variables
 */
export function hiddenVariables(
  environment: Environment,
  listed: readonly string[] = [],
): Readonly<Record<string, string>> {
  const all = Object.entries(environment).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  const isPublic = ([name]: [string, string]): boolean => isPublicVariable(name, listed);
  const known = new Set(all.filter(isPublic).map(([, value]) => value));
  return Object.fromEntries(
    all.filter((entry) => {
      const [, value] = entry;
      return (
        !isPublic(entry) && value.length >= MIN_SECRET_LENGTH && !known.has(value) && !ORDINARY.test(value)
      );
    }),
  );
}

/**
 * Returns the texts that no log may show: values of a command's hidden variables, credentials in addresses, and secrets
 * in the environment of this process.
 *
 * @param environment environment of the command
 * @param listed additional public variables
 */
export function hiddenValues(environment: Environment = {}, listed: readonly string[] = []): string[] {
  const own = Object.entries(process.env).filter(
    ([name]) => SECRET_NAME.test(name) && !LOCATION_NAME.test(name) && !matchesVariable(name, listed),
  );
  const addresses = [...Object.values(process.env), ...Object.values(environment)];
  return [
    ...own.map(([, value = '']) => value),
    ...Object.values(hiddenVariables(environment, listed)),
    ...addresses.flatMap((value = '') => credentialsIn(value)),
  ];
}
