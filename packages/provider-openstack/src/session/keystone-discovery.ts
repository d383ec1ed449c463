import type { SettingsOf } from '@nodepool-builder/image-builder';
import { atOrigin, objectOf, TEXT } from '@nodepool-builder/image-builder/internal';
import { JsonReader } from '@nodepool-builder/image-builder/plugin';
import type { KeystoneAuth, NamedInDomain } from '../cloud-settings.ts';

/** Version and URL of the Keystone API. */
export interface IdentityApi {
  readonly version: 2 | 3;
  /** URL without a trailing slash. */
  readonly url: string;
}

const USABLE = /^(stable|current|supported|deprecated)$/i;

const SEGMENTS = { 2: 'v2.0', 3: 'v3' } as const;

const AT_ITS_END = /\/v(2|3)(?:\.\d+)?$/;

/** Returns the Keystone API that the settings fix, by a version or by the path of `auth_url`. */
export function configuredIdentityApi(auth: KeystoneAuth): IdentityApi | undefined {
  const url = auth.url.replace(/(?<!\/)\/+$/, '');
  const inPath = AT_ITS_END.exec(url)?.[1];
  const fixed = auth.type === 'application-credential' ? 3 : auth.version; // Keystone v2 has no application credentials.
  const version = fixed ?? (inPath === undefined ? undefined : inPath === '2' ? 2 : 3);
  if (version === undefined) return undefined;
  return inPath === String(version)
    ? { version, url }
    : { version, url: `${url.replace(AT_ITS_END, '')}/${SEGMENTS[version]}` };
}

/**
 * Chooses from the versions that Keystone lists at `auth_url`, as keystoneauth does. The choice is v3 if the settings
 * name a domain, which v2 does not support, else v2 if possible. Undefined if no version is usable.
 *
 * @throws Error that names the invalid field of the list
 */
export function listedIdentityApi(auth: KeystoneAuth, response: unknown): IdentityApi | undefined {
  const apis = versionsIn(response).flatMap(({ id, status, links }) => {
    const version = /^v(2|3)\b/.exec(id)?.[1];
    const self = LINK.valid(links).find(({ rel }) => rel === 'self');
    const url = self && linked(auth.url, self.href);
    if (version === undefined || url === undefined || !USABLE.test(String(status))) return [];
    return [{ version: version === '2' ? 2 : 3, url } as const];
  });
  const v3 = apis.find(({ version }) => version === 3);
  return namesDomains(auth) ? v3 : (apis.find(({ version }) => version === 2) ?? v3);
}

const VERSION = objectOf({ id: TEXT, links: { type: 'array' } }, { status: {} });

const VERSION_READER = new JsonReader(VERSION);

const LINK = new JsonReader(objectOf({ rel: TEXT, href: TEXT }));

const VERSIONS = new JsonReader({
  type: 'object',
  properties: {
    version: {},
    versions: {
      type: ['array', 'object'],
      required: ['values'],
      properties: { values: { type: 'array' } },
    },
  },
});

/**
 * Extracts the versions. The root of Keystone has `versions.values` or `versions`, the root of a version has `version`.
 */
function versionsIn(response: unknown): readonly SettingsOf<typeof VERSION>[] {
  const { version, versions = [] } = VERSIONS.check(response, 'the version list');
  const listed = version === undefined ? ('length' in versions ? versions : versions.values) : [version];
  return VERSION_READER.valid(listed);
}

/**
 * Returns the URL of a link with the scheme and host of auth_url, as keystoneauth does, because a Keystone behind a
 * load balancer may link to another host. A relative link is resolved below auth_url. Undefined if it is invalid.
 */
function linked(authUrl: string, href: string): string | undefined {
  const base = new URL(authUrl);
  if (!base.pathname.endsWith('/')) base.pathname += '/';
  const url = URL.parse(href, base.href);
  return url === null ? undefined : atOrigin(url, base).href.replace(/(?<!\/)\/+$/, '');
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
