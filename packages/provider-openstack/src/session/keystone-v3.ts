import { JsonReader, utcTime } from '@nodepool-builder/image-builder/module-kit';
import type { AuthScope, CloudAuth, NamedInDomain } from '../cloud-settings.ts';
import type { CatalogEndpoint } from './catalog.ts';
import type { Token, TokenExchange } from './token.ts';

type KeystoneAuth = Exclude<CloudAuth, { type: 'none' }>;

/** `POST /v3/auth/tokens` (Identity API v3, "Authentication and token management"). */
export function v3Exchange(auth: KeystoneAuth): TokenExchange {
  return { path: '/auth/tokens', body: { auth: claim(auth) }, read };
}

function claim(auth: KeystoneAuth): object {
  if (auth.type === 'application-credential') {
    const { id, name, user = {}, secret } = auth;
    const which = id === undefined ? { name, user: named(user) } : { id };
    // without a scope, Keystone refuses one here: the credential has its own
    return { identity: identity('application_credential', { ...which, secret }) };
  }
  const method =
    auth.type === 'password'
      ? identity('password', { user: { ...named(auth.user), password: auth.password } })
      : identity('token', { id: auth.token });
  const scope = scopeOf(auth.scope);
  return { identity: method, ...(scope !== undefined && { scope }) };
}

function identity(method: string, value: object): object {
  return { methods: [method], [method]: value };
}

function scopeOf({ project, domain, system }: AuthScope): object | undefined {
  if (project !== undefined) return { project: named(project) };
  if (domain !== undefined)
    return { domain: domain.id === undefined ? { name: domain.name } : { id: domain.id } };
  return system === undefined ? undefined : { system: { all: true } };
}

function named({ id, name, domainId, domainName }: NamedInDomain): object {
  if (id !== undefined) return { id };
  if (domainId !== undefined) return { name, domain: { id: domainId } };
  return domainName === undefined ? { name } : { name, domain: { name: domainName } };
}

const TEXT = { type: 'string' } as const;
const TIME = { type: 'string', format: 'time' } as const;

const HEADERS = new JsonReader({
  type: 'object',
  required: ['x-subject-token'],
  properties: { 'x-subject-token': TEXT },
});

const ANSWER = new JsonReader({
  type: 'object',
  required: ['token'],
  properties: {
    token: {
      type: 'object',
      required: ['expires_at'],
      properties: {
        expires_at: TIME,
        issued_at: TIME,
        project: { type: 'object', required: ['id'], properties: { id: TEXT } },
        catalog: {
          type: ['array', 'null'],
          items: {
            type: 'object',
            required: ['type'],
            properties: {
              type: TEXT,
              name: {},
              endpoints: {
                type: ['array', 'null'],
                items: {
                  type: 'object',
                  required: ['interface', 'url'],
                  properties: { interface: TEXT, url: TEXT, region_id: {}, region: {} },
                },
              },
            },
          },
        },
      },
    },
  },
});

function read({ headers, value, now }: Parameters<TokenExchange['read']>[0]): Token {
  const { 'x-subject-token': id } = HEADERS.check(headers, 'the headers');
  const { token } = ANSWER.check(value);
  const issuedAt = token.issued_at === undefined ? now : utcTime(token.issued_at);
  return {
    id,
    expiresAt: now + (utcTime(token.expires_at) - issuedAt),
    catalog: (token.catalog ?? []).flatMap(({ type, name, endpoints }) =>
      (endpoints ?? []).map(
        (endpoint): CatalogEndpoint => ({
          type,
          name: typeof name === 'string' ? name : undefined,
          interface: endpoint.interface,
          regionId: [endpoint.region_id, endpoint.region].find((region) => typeof region === 'string'),
          url: endpoint.url,
        }),
      ),
    ),
    projectId: token.project?.id,
  };
}
