import type { ObjectSchema, ProviderEntry } from '@nodepool-builder/image-builder';

const TEXT = { type: 'string', minLength: 1 } as const;

/** Keys of an entry of `providers` with `type: oci`. */
export const OCI_SETTINGS = {
  type: 'object',
  description: 'disk images and container images in an OCI registry',
  required: ['repository'],
  properties: {
    repository: {
      ...TEXT,
      description: 'Repository for the images, including the registry: `registry.example.com/ci/images`.',
      $comment: 'set it to the repository, such as registry.example.com/ci/images',
    },
    endpoint: {
      ...TEXT,
      description: 'URL of the registry. Default: `https://` and the host in `repository`.',
    },
    'auth-file': {
      type: 'string',
      format: 'path',
      minLength: 1,
      description:
        'Credentials file, as written by `podman login` and `docker login`. Default: `REGISTRY_AUTH_FILE`, else the ' +
        'files of podman and docker.',
    },
    'ca-file': {
      type: 'string',
      format: 'path',
      minLength: 1,
      description:
        "PEM file with the registry's certificate authority. Default: `REQUESTS_CA_BUNDLE`, else Node's certificate authorities.",
    },
    layout: {
      enum: ['artifact', 'container-disk', 'container-image'],
      default: 'artifact',
      description:
        '`artifact`: the file is the only layer, as ORAS stores files. `container-disk`: a disk for KubeVirt. ' +
        '`container-image`: a `tar` becomes the only layer of a container image, or is pushed unchanged if it is an archive in ' +
        'the OCI layout.',
    },
    compression: {
      enum: ['zstd', 'gzip', 'none'],
      default: 'zstd',
      description:
        'Compression of the layer. A `container-image` that is pushed unchanged keeps its own compression.',
    },
    'chunk-size': {
      type: 'integer',
      minimum: 65_536,
      default: 8_388_608,
      description:
        'Size of an upload request in bytes. An interrupted upload resumes with the first missing chunk.',
    },
  },
} as const satisfies ObjectSchema;

export type OciEntry = ProviderEntry<typeof OCI_SETTINGS>;

/** A repository and its registry. */
export interface RepositoryName {
  /** `registry.example.com:5000`. */
  readonly host: string;
  /** `ci/images`. */
  readonly path: string;
}

/** Docker Hub's registry host differs from the host in its image names. */
const HUB = { name: 'docker.io', endpoint: 'https://registry-1.docker.io' } as const;

/** Pattern of a repository path (OCI distribution specification, "Pulling manifests"). */
const PATH = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:\/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*$/;

/** Parses `repository`; undefined if it is not a repository name with its registry. */
export function parseRepository(text: string): RepositoryName | undefined {
  const { host = '', path = '' } = /^(?<host>[^/]+)\/(?<path>.+)$/.exec(text)?.groups ?? {};
  const isHost =
    (host.includes('.') || host.includes(':') || host === 'localhost') && URL.canParse(`https://${host}`);
  return isHost && !host.includes('@') && PATH.test(path) ? { host, path } : undefined;
}

/** Returns the registry URL of an entry. */
export function endpointOf({ endpoint }: Pick<OciEntry, 'endpoint'>, { host }: RepositoryName): URL {
  return new URL(endpoint ?? (host === HUB.name ? HUB.endpoint : `https://${host}`));
}
