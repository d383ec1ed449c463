import { JsonReader, utcTime } from '@nodepool-builder/image-builder/module-kit';
import type { CloudAuth, NamedInDomain } from '../cloud-settings.ts';
import type { CatalogEndpoint } from './catalog.ts';
import type { Token, TokenExchange } from './token.ts';

type KeystoneAuth = Exclude<CloudAuth, { type: 'none' }>;

const INTERFACES = ['public', 'internal', 'admin'] as const;

/** `POST /v2.0/tokens` (Identity API v2.0: removed in Queens, but old clouds have nothing else). */
export function v2Exchange(auth: KeystoneAuth): TokenExchange {
  return { path: '/tokens', body: { auth: claim(auth) }, read };
}

function claim(auth: KeystoneAuth): object {
  // never chosen for one: see the discovery
  if (auth.type === 'application-credential') return {};
  const credentials =
    auth.type === 'password'
      ? { passwordCredentials: { ...user(auth.user), password: auth.password } }
      : { token: { id: auth.token } };
  return { ...credentials, ...tenant(auth.scope.project ?? {}) };
}

function user({ id, name }: NamedInDomain): object {
  return id === undefined ? { username: name } : { userId: id };
}

function tenant({ id, name }: NamedInDomain): object {
  if (id !== undefined) return { tenantId: id };
  return name === undefined ? {} : { tenantName: name };
}

const TEXT = { type: 'string' } as const;
const TIME = { type: 'string', format: 'time' } as const;

const ANSWER = new JsonReader({
  type: 'object',
  required: ['access'],
  properties: {
    access: {
      type: 'object',
      required: ['token'],
      properties: {
        token: {
          type: 'object',
          required: ['id', 'expires'],
          properties: {
            id: TEXT,
            expires: TIME,
            /** Rackspace omits it. */
            issued_at: TIME,
            tenant: { type: 'object', properties: { id: {} } },
          },
        },
        serviceCatalog: {
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
                  properties: { region: {}, publicURL: TEXT, internalURL: TEXT, adminURL: TEXT },
                },
              },
            },
          },
        },
      },
    },
  },
});

function read({ value, now }: Parameters<TokenExchange['read']>[0]): Token {
  const { token, serviceCatalog } = ANSWER.check(value).access;
  // v2 writes issued_at in UTC, without a zone
  const issuedAt = token.issued_at === undefined ? now : utcTime(token.issued_at);
  const project = token.tenant?.id;
  return {
    id: token.id,
    expiresAt: now + (utcTime(token.expires) - issuedAt),
    catalog: (serviceCatalog ?? []).flatMap(({ type, name, endpoints }) =>
      (endpoints ?? []).flatMap((endpoint) =>
        INTERFACES.flatMap((which): CatalogEndpoint[] => {
          const url = endpoint[`${which}URL`];
          if (url === undefined) return [];
          return [
            {
              type,
              name: typeof name === 'string' ? name : undefined,
              interface: which,
              regionId: typeof endpoint.region === 'string' ? endpoint.region : undefined,
              url,
            },
          ];
        }),
      ),
    ),
    projectId: typeof project === 'string' ? project : undefined,
  };
}
