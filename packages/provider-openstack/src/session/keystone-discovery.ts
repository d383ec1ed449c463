import type { SettingsOf } from '@nodepool-builder/image-builder';
import { JsonReader } from '@nodepool-builder/image-builder/module-kit';
import type { CloudAuth, NamedInDomain } from '../cloud-settings.ts';

type KeystoneAuth = Exclude<CloudAuth, { type: 'none' }>;

/** URL and version of Keystone's API. */
export interface IdentityApi {
  readonly version: 2 | 3;
  /** Without a slash at its end. */
  readonly url: string;
}

const SEGMENTS = { 2: 'v2.0', 3: 'v3' } as const;

const AT_ITS_END = /\/v(2|3)(?:\.\d+)?$/;

/** The API that the settings name, by a version or by the path of `auth_url`. */
export function configuredIdentityApi(auth: KeystoneAuth): IdentityApi | undefined {
  const url = auth.url.replace(/(?<!\/)\/+$/, '');
  const inPath = AT_ITS_END.exec(url)?.[1];
  const version = versionOf(auth) ?? (inPath === undefined ? undefined : inPath === '2' ? 2 : 3);
  if (version === undefined) return undefined;
  return inPath === String(version)
    ? { version, url }
    : { version, url: `${url.replace(AT_ITS_END, '')}/${SEGMENTS[version]}` };
}

/**
 * Chooses from the versions that Keystone lists at `auth_url`, as keystoneauth does: v2 if the settings name no domain,
 * which v2 does not have; else v3. Undefined if no version fits.
 *
 * @throws Error that names the invalid field of the list
 */
export function listedIdentityApi(auth: KeystoneAuth, answer: unknown): IdentityApi | undefined {
  const apis = versionsIn(answer).flatMap(({ id, status, links }) => {
    const version = /^v(2|3)\b/.exec(id)?.[1];
    const self = links.find(({ rel }) => rel === 'self');
    if (version === undefined || self === undefined || !USABLE.includes(status)) return [];
    const api: IdentityApi = {
      version: version === '2' ? 2 : 3,
      url: linked(auth.url, self.href),
    };
    return [api];
  });
  const wanted = namesDomains(auth) ? [3] : [2, 3];
  return wanted
    .map((version) => apis.find((api) => api.version === version))
    .find((api) => api !== undefined);
}

const USABLE: readonly unknown[] = [
  'stable',
  'current',
  'CURRENT',
  'supported',
  'SUPPORTED',
  'deprecated',
  'DEPRECATED',
];

const VERSION = {
  type: 'object',
  required: ['id', 'links'],
  properties: {
    id: { type: 'string' },
    status: {},
    links: {
      type: 'array',
      items: { type: 'object', required: ['href'], properties: { rel: {}, href: { type: 'string' } } },
    },
  },
} as const;

const VERSIONS = new JsonReader({
  type: 'object',
  properties: {
    version: VERSION,
    versions: {
      type: ['array', 'object'],
      items: VERSION,
      required: ['values'],
      properties: { values: { type: 'array', items: VERSION } },
    },
  },
});

/** Keystone's root has `versions.values` or `versions`, a version's root has `version`. */
function versionsIn(answer: unknown): readonly SettingsOf<typeof VERSION>[] {
  const { version, versions = [] } = VERSIONS.check(answer, 'the list of versions');
  if (version !== undefined) return [version];
  return 'length' in versions ? versions : versions.values;
}

/** A Keystone behind a TLS proxy may list itself as http; passwords are still sent over TLS. */
function linked(authUrl: string, href: string): string {
  const url = new URL(href, authUrl);
  const base = new URL(authUrl);
  const safe = base.protocol === 'https:' && url.protocol !== 'https:' ? new URL(url.pathname, base) : url;
  return safe.href.replace(/(?<!\/)\/+$/, '');
}

/** Application credentials are younger than v2. */
function versionOf(auth: KeystoneAuth): 2 | 3 | undefined {
  return auth.type === 'application-credential' ? 3 : auth.version;
}

function namesDomains(auth: KeystoneAuth): boolean {
  if (auth.type === 'application-credential') return true;
  const { project = {}, domain, system } = auth.scope;
  const user = auth.type === 'password' ? auth.user : {};
  return domain !== undefined || system !== undefined || hasDomain(project) || hasDomain(user);
}

function hasDomain({ domainId, domainName }: NamedInDomain): boolean {
  return domainId !== undefined || domainName !== undefined;
}
