import { FORMAT_NAMES } from '@nodepool-builder/image-builder';
import { FORMAT_ALIASES } from '@nodepool-builder/zuul-images';
import type { SchemaNode } from './schema-node.ts';
import { VALIDATION_SCHEMA } from './validation-schema.ts';

const TEXT: SchemaNode = { type: 'string', minLength: 1 };

const NOT_BY_TIME: SchemaNode = {
  description: 'Not for these images: a new one is taken when Zuul has built it.',
};

const AUTH: SchemaNode = {
  type: 'object',
  additionalProperties: false,
  description: 'How to authenticate to the API, in one of these ways. Default: not at all.',
  properties: {
    'token-file': { ...TEXT, description: 'A file with a bearer token; it is read for each request.' },
    'token-command': {
      type: 'array',
      minItems: 1,
      items: TEXT,
      description: 'A command and its arguments; it prints a bearer token.',
    },
    'shared-secret': {
      type: 'object',
      required: ['issuer', 'audience', 'subject', 'secret-file'],
      additionalProperties: false,
      description: 'Tokens are made here, for a section `auth` of zuul.conf with the driver HS256.',
      properties: {
        issuer: { ...TEXT, description: '`issuer_id` there.' },
        audience: { ...TEXT, description: '`client_id` there.' },
        subject: { ...TEXT, description: "Who we are for Zuul's access rules." },
        'secret-file': { ...TEXT, description: 'A file that holds what is `secret` there.' },
      },
    },
    'client-credentials': {
      type: 'object',
      required: ['issuer', 'client-id', 'secret-file'],
      additionalProperties: false,
      description: 'Tokens come from an OpenID provider, by the grant for clients (RFC 6749, section 4.4).',
      properties: {
        issuer: { ...TEXT, description: "The provider's issuer URL." },
        'client-id': { ...TEXT, description: 'The client that we are there.' },
        'secret-file': { ...TEXT, description: "A file that holds the client's secret." },
        scope: { ...TEXT, description: 'What the token is to be good for, where the provider asks for it.' },
      },
    },
  },
};

const MQTT: SchemaNode = {
  type: 'object',
  required: ['url', 'topic'],
  additionalProperties: false,
  description: "Where Zuul's MQTT reporter publishes: a build is looked for as soon as one has ended.",
  properties: {
    url: { ...TEXT, description: '`mqtt://host:1883` or `mqtts://host:8883`.' },
    topic: { ...TEXT, description: 'What is subscribed to; it may hold wildcards.' },
    username: { ...TEXT, description: 'The user.' },
    'password-file': { ...TEXT, description: 'A file that holds the password.' },
    'ca-file': { ...TEXT, description: 'Certificates of authorities that the broker is trusted by, as PEM.' },
  },
};

const PROPERTIES: Readonly<Record<string, SchemaNode>> = {
  'api-url': {
    ...TEXT,
    description: 'The address of Zuul, of its API, or of a tenant there, as a browser shows it.',
  },
  tenant: {
    ...TEXT,
    description: 'Needed where `api-url` names none and that Zuul has more than one.',
  },
  project: { ...TEXT, description: 'The short name: `opendev/system-config`, without the Git server.' },
  pipelines: {
    type: 'array',
    minItems: 1,
    items: TEXT,
    description: 'A successful build in any of them is good.',
  },
  job: { ...TEXT, description: 'The job that builds the image.' },
  branch: { ...TEXT, description: 'Only builds for this branch. Default: any, and what is no branch, too.' },
  'image-name': {
    ...TEXT,
    description:
      'What the job returns as `image_name`, where one job makes several images. Default: the name here.',
  },
  artifacts: {
    type: 'array',
    minItems: 1,
    description: 'Which artifact of a build holds the image in which format.',
    items: {
      type: 'object',
      required: ['format', 'type'],
      additionalProperties: false,
      properties: {
        format: {
          enum: [...FORMAT_NAMES, ...Object.keys(FORMAT_ALIASES)],
          description: 'The format; `qcow` is another name of `qcow2`.',
        },
        type: { ...TEXT, description: 'What the job returns as `type` in the metadata of the artifact.' },
      },
    },
  },
  auth: AUTH,
  'ca-file': {
    ...TEXT,
    description:
      'Certificates of authorities, as PEM, that the API and the artifacts are trusted by besides the usual ones.',
  },
  'poll-interval': {
    type: 'number',
    minimum: 1,
    maximum: 86_400,
    default: 60,
    description: 'Seconds between two looks for a new build.',
  },
  mqtt: MQTT,
  's3-endpoint': { ...TEXT, description: 'The URL under which the buckets lie that `s3://` names.' },
  'allowed-hosts': {
    type: 'array',
    items: TEXT,
    description:
      'Names or addresses of hosts in loopback, link-local or private networks that artifacts may be fetched from. ' +
      'Default: none, unless `api-url` or `s3-endpoint` is in such a network itself.',
  },
  'require-sha256': {
    type: 'boolean',
    default: false,
    description: 'A build whose job returns no `sha256` of the image is refused.',
  },
  formats: {
    type: ['array', 'null'],
    items: { enum: FORMAT_NAMES },
    description: 'Formats to have on disk besides those that the providers of the image take.',
  },
  pause: {
    type: 'boolean',
    default: false,
    description: 'No new one is taken for the time being, and `image-build` is not offered.',
  },
  'build-timeout': {
    type: 'number',
    minimum: 1,
    default: 14_400,
    description: 'Seconds after which a download, with what is made of it, is stopped.',
  },
  validate: VALIDATION_SCHEMA,
  keep: {
    type: 'integer',
    minimum: 1,
    default: 2,
    description: 'How many good ones the manager keeps, on disk and in each provider.',
  },
  'rebuild-age': NOT_BY_TIME,
  'rebuild-cron': NOT_BY_TIME,
};

const REQUIRED: readonly string[] = ['api-url', 'project', 'pipelines', 'job', 'artifacts'];

/** `zuul-images`: a list of entries with their names, or a mapping of names to entries. */
export const ZUUL_IMAGES_SCHEMA: SchemaNode = {
  type: ['array', 'object', 'null'],
  description:
    'Images that jobs of Zuul build: a list, or a mapping of names to entries. Providers name them as `diskimage`.',
  items: {
    type: 'object',
    required: ['name', ...REQUIRED],
    additionalProperties: false,
    properties: {
      name: {
        ...TEXT,
        description: 'Offered to Gearman as `image-build:<name>`, like those of `diskimages`.',
      },
      ...PROPERTIES,
    },
  },
  additionalProperties: {
    type: 'object',
    required: REQUIRED,
    additionalProperties: false,
    properties: PROPERTIES,
  },
};
