import type { IncomingHttpHeaders } from 'node:http';
import { type IssuedToken, objectOf, TEXT, utcTime } from '@nodepool-builder/image-builder/internal';
import { JsonReader } from '@nodepool-builder/image-builder/plugin';
import type { AuthScope, KeystoneAuth, NamedInDomain } from '../cloud-settings.ts';
import type { CatalogEndpoint } from './catalog.ts';

/** A Keystone token, the value of the `X-Auth-Token` header, with the service catalog. */
export interface Token extends IssuedToken {
  readonly catalog: readonly CatalogEndpoint[];
  readonly projectId: string | undefined;
}

/** Token request of one version of the Keystone API. */
export interface TokenRequest {
  /** Path relative to the versioned URL. */
  readonly path: string;
  /** Builds the body of the POST. */
  readonly body: (auth: KeystoneAuth) => object;
  /** @throws Error that names the invalid field */
  readonly read: (response: { headers: IncomingHttpHeaders; value: unknown; now: number }) => Token;
}

const TIME = { type: 'string', format: 'date-time' } as const;
const CATALOG = { type: ['array', 'null'] } as const;

/** `POST /v3/auth/tokens` (Identity API v3, "Authentication and token management"). */
export const V3: TokenRequest = {
  path: '/auth/tokens',
  body(auth) {
    if (auth.type === 'application-credential') {
      const { id, name, user = {}, secret } = auth;
      const which = id === undefined ? { name, user: named(user) } : { id };
      // Keystone rejects a scope here, because the credential already has one.
      return { auth: { identity: identity('application_credential', { ...which, secret }) } };
    }
    const method =
      auth.type === 'password'
        ? identity('password', { user: { ...named(auth.user), password: auth.password } })
        : identity('token', { id: auth.token });
    const scope = scopeOf(auth.scope);
    return { auth: { identity: method, ...(scope !== undefined && { scope }) } };
  },
  read({ headers, value, now }) {
    const { 'x-subject-token': text } = V3_HEADERS.check(headers, 'the headers');
    const { token } = V3_RESPONSE.check(value);
    const catalog = endpointsIn(token.catalog, (values) =>
      V3_ENDPOINT.valid(values).map((endpoint) => ({
        interface: endpoint.interface,
        regionId: textOf(endpoint.region_id) ?? textOf(endpoint.region),
        url: textOf(endpoint.url),
      })),
    );
    const expiresAt = expiry(token.expires_at, token.issued_at, now);
    return { value: text, expiresAt, catalog, projectId: token.project?.id };
  },
};

function identity(method: string, value: object): object {
  return { methods: [method], [method]: value };
}

function scopeOf({ project, domain, system }: AuthScope): object | undefined {
  if (project !== undefined) return { project: named(project) };
  if (domain !== undefined) return { domain: named(domain) };
  return system === undefined ? undefined : { system: { all: true } };
}

function named({ id, name, domainId, domainName }: NamedInDomain): object {
  if (id !== undefined) return { id };
  if (domainId !== undefined) return { name, domain: { id: domainId } };
  return domainName === undefined ? { name } : { name, domain: { name: domainName } };
}

const V3_ENDPOINT = new JsonReader(objectOf({ interface: TEXT }, { url: {}, region_id: {}, region: {} }));

const V3_HEADERS = new JsonReader(objectOf({ 'x-subject-token': TEXT }));

const V3_TOKEN = objectOf(
  { expires_at: TIME },
  {
    issued_at: TIME,
    project: { ...objectOf({ id: TEXT }), type: ['object', 'null'] },
    catalog: CATALOG,
  },
);

const V3_RESPONSE = new JsonReader(objectOf({ token: V3_TOKEN }));

/** `POST /v2.0/tokens` (Identity API v2.0; removed in Queens, but some old clouds have only this version). */
export const V2: TokenRequest = {
  path: '/tokens',
  body(auth) {
    if (auth.type === 'application-credential') throw new TypeError('v2 has no application credentials');
    const credentials =
      auth.type === 'password'
        ? { passwordCredentials: { ...v2User(auth.user), password: auth.password } }
        : { token: { id: auth.token } };
    return { auth: { ...credentials, ...tenant(auth.scope.project ?? {}) } };
  },
  read({ value, now }) {
    const { token, serviceCatalog } = V2_RESPONSE.check(value).access;
    const catalog = endpointsIn(serviceCatalog, (values) =>
      V2_ENDPOINT.valid(values).flatMap((endpoint) =>
        (['public', 'internal', 'admin'] as const).flatMap((which) => {
          const { region, [`${which}URL` as const]: url } = endpoint;
          return url === undefined ? [] : [{ interface: which, regionId: textOf(region), url: textOf(url) }];
        }),
      ),
    );
    const project = token.tenant?.id;
    return {
      value: token.id,
      expiresAt: expiry(token.expires, token.issued_at, now),
      catalog,
      projectId: textOf(project),
    };
  },
};

function v2User({ id, name }: NamedInDomain): object {
  return id === undefined ? { username: name } : { userId: id };
}

function tenant({ id, name }: NamedInDomain): object {
  if (id !== undefined) return { tenantId: id };
  return name === undefined ? {} : { tenantName: name };
}

const V2_ENDPOINT = new JsonReader(
  objectOf({}, { region: {}, publicURL: {}, internalURL: {}, adminURL: {} }),
);

const V2_TOKEN = objectOf(
  { id: TEXT, expires: TIME },
  {
    /** Rackspace omits this field. */
    issued_at: TIME,
    tenant: objectOf({}, { id: {} }),
  },
);

const V2_RESPONSE = new JsonReader(
  objectOf({ access: objectOf({ token: V2_TOKEN }, { serviceCatalog: CATALOG }) }),
);

const SERVICE = new JsonReader(objectOf({ type: TEXT, endpoints: { type: 'array' } }, { name: {} }));

/** Lists the endpoints of a catalog. Skips services and endpoints that cannot be read, because others may be valid. */
function endpointsIn(
  catalog: readonly unknown[] | null | undefined,
  read: (endpoints: readonly unknown[]) => readonly Omit<CatalogEndpoint, 'type' | 'name'>[],
): CatalogEndpoint[] {
  return SERVICE.valid(catalog ?? []).flatMap(({ type, name, endpoints }) =>
    read(endpoints).map((endpoint) => ({ type, name: textOf(name), ...endpoint })),
  );
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/**
 * Computes when a token expires by our clock from its lifetime, because Keystone's clock may be wrong. v2 omits the
 * time zone.
 */
function expiry(expires: string, issued: string | undefined, now: number): number {
  return now + (utcTime(expires) - (issued === undefined ? now : utcTime(issued)));
}
