import type { SettingsCase } from '../settings-case.ts';

/** A cloud like a vendor’s with import tasks, in another region. */
const RAXLIKE = `
  raxlike:
    auth: {auth_url: 'https://file.example', username: file, password: file, project_name: file}
    regions: [DFW]
    image_format: vhd
    image_api_use_tasks: true
`;

const OTHER = `
  other:
    auth: {auth_url: 'https://other.example', username: other, password: other, project_name: other}
    image_format: raw
`;

/** Contents of `clouds.yaml`. */
export const FILES = {
  'no file': {},
  'one cloud': { 'cwd/clouds.yaml': `clouds:${RAXLIKE}` },
  'two clouds': { 'cwd/clouds.yaml': `clouds:${RAXLIKE}${OTHER}` },
} as const satisfies Readonly<Record<string, SettingsCase['files']>>;

const OPENRC = {
  OS_AUTH_URL: 'https://env.example',
  OS_USERNAME: 'env',
  OS_PASSWORD: 'env',
  OS_PROJECT_NAME: 'env',
};

/** Environments. */
export const ENVIRONMENTS = {
  'no variable': {},
  'OS_CLOUD of the file': { OS_CLOUD: 'raxlike' },
  'OS_CLOUD of none': { OS_CLOUD: 'none' },
  OS_REGION_NAME: { OS_REGION_NAME: 'RegionEnv' },
  OS_FORCE_IPV4: { OS_FORCE_IPV4: 'true', OS_PREFER_IPV6: 'false' },
  OS_PASSWORD: { OS_PASSWORD: 'env' },
  openrc: OPENRC,
  'openrc with a region': { ...OPENRC, OS_REGION_NAME: 'RegionEnv' },
  'openrc and OS_CLOUD': { ...OPENRC, OS_CLOUD: 'raxlike' },
  'openrc and OS_CLOUD_NAME': { ...OPENRC, OS_CLOUD_NAME: 'mine' },
} as const satisfies Readonly<Record<string, SettingsCase['env']>>;

const OWN = { username: 'own', password: 'own', authUrl: 'https://own.example', projectName: 'own' };

/** Settings of providers. */
export const PROVIDERS = {
  nothing: {},
  credentials: { provider: OWN },
  'credentials, RegionTwo': { provider: OWN, regionName: 'RegionTwo' },
  'credentials, DFW': { provider: OWN, regionName: 'DFW' },
  'username and password': { provider: { username: 'own', password: 'own' } },
  password: { provider: { password: 'own' } },
  'auth-url': { provider: { authUrl: 'https://own.example' } },
  'project-name': { provider: { projectName: 'own' } },
  'api-timeout': { provider: { apiTimeout: 5 } },
  RegionTwo: { regionName: 'RegionTwo' },
  cloud: { cloud: 'raxlike' },
  'cloud, RegionTwo': { cloud: 'raxlike', regionName: 'RegionTwo' },
  'cloud, credentials': { cloud: 'raxlike', provider: OWN },
  'cloud, credentials, RegionTwo': { cloud: 'raxlike', provider: OWN, regionName: 'RegionTwo' },
  'cloud envvars': { cloud: 'envvars' },
  'cloud of none': { cloud: 'none' },
} as const satisfies Readonly<Record<string, Pick<SettingsCase, 'cloud' | 'provider' | 'regionName'>>>;

/**
 * The cloud that os-client-config 1.22 uses in each combination, found by running it: one column for each of
 * {@link PROVIDERS}. `o`: only the provider's own settings; `f`: `raxlike` of the file; `e`: the environment's; `-`: an
 * error. The provider's own settings take precedence. `F`: an error in 1.22, while openstacksdk uses the only cloud of
 * the file, as we do for a provider without credentials.
 */
export const EXPECTED: readonly (readonly [keyof typeof FILES, keyof typeof ENVIRONMENTS, string])[] = [
  ['no file', 'no variable', '- o o o - - - - - - - - - - - -'],
  ['no file', 'OS_CLOUD of the file', '- o o o - - - - - - - - - - - -'],
  ['no file', 'OS_CLOUD of none', '- o o o - - - - - - - - - - - -'],
  ['no file', 'OS_REGION_NAME', '- o o o - - - - - - - - - - - -'],
  ['no file', 'OS_FORCE_IPV4', '- o o o - - - - - - - - - - - -'],
  ['no file', 'OS_PASSWORD', '- e e e - - - - - - - - - - - -'],
  ['no file', 'openrc', 'e e e e e e e e e e - - - - e -'],
  ['no file', 'openrc with a region', 'e e - - e e e e e - - - - - e -'],
  ['no file', 'openrc and OS_CLOUD', '- - - - - - - - - - - - - - e -'],
  ['no file', 'openrc and OS_CLOUD_NAME', 'e e e e e e e e e e - - - - - -'],
  ['one cloud', 'no variable', 'F o o o - - - F F - f - f - - -'],
  ['one cloud', 'OS_CLOUD of the file', 'f f - f f f f f f - f - f - - -'],
  ['one cloud', 'OS_CLOUD of none', '- - - - - - - - - - f - f - - -'],
  ['one cloud', 'OS_REGION_NAME', 'F o o o - - - F F - f - f - - -'],
  ['one cloud', 'OS_FORCE_IPV4', 'F o o o - - - F F - f - f - - -'],
  ['one cloud', 'OS_PASSWORD', '- e e e - - - - - - f - f - - -'],
  ['one cloud', 'openrc', 'e e e e e e e e e e f - f - e -'],
  ['one cloud', 'openrc with a region', 'e e - - e e e e e - f - f - e -'],
  ['one cloud', 'openrc and OS_CLOUD', 'f f - f f f f f f - f - f - e -'],
  ['one cloud', 'openrc and OS_CLOUD_NAME', 'e e e e e e e e e e f - f - - -'],
  ['two clouds', 'no variable', '- o o o - - - - - - f - f - - -'],
  ['two clouds', 'OS_CLOUD of the file', 'f f - f f f f f f - f - f - - -'],
  ['two clouds', 'OS_CLOUD of none', '- - - - - - - - - - f - f - - -'],
  ['two clouds', 'OS_REGION_NAME', '- o o o - - - - - - f - f - - -'],
  ['two clouds', 'OS_FORCE_IPV4', '- o o o - - - - - - f - f - - -'],
  ['two clouds', 'OS_PASSWORD', '- e e e - - - - - - f - f - - -'],
  ['two clouds', 'openrc', 'e e e e e e e e e e f - f - e -'],
  ['two clouds', 'openrc with a region', 'e e - - e e e e e - f - f - e -'],
  ['two clouds', 'openrc and OS_CLOUD', 'f f - f f f f f f - f - f - e -'],
  ['two clouds', 'openrc and OS_CLOUD_NAME', 'e e e e e e e e e e f - f - - -'],
];
