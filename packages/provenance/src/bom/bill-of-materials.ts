import { createHash } from 'node:crypto';
import type { Models } from '@cyclonedx/cyclonedx-library';
import type { Package } from '../types.ts';
import { packageOrder } from './compare-packages.ts';

/** Contents of a bill of materials. */
export interface BillOfMaterials {
  readonly imageId: string;
  /** `diskimages[].name`. */
  readonly imageName?: string | undefined;
  /** End of the build, ISO 8601. */
  readonly finished: string;
  readonly packages: readonly Package[];
  /** Name of the package list of the build: `12-4abc.packages`. */
  readonly source?: string;
  /** Files of the image. Default: none. */
  readonly files?: readonly { readonly name: string; readonly sha256: string }[];
}

/** Formats a bill of materials as CycloneDX 1.6 in JSON. The same contents always give the same bytes. */
export async function formatBillOfMaterials(contents: BillOfMaterials): Promise<string> {
  const { Enums, Models, Serialize, Spec } = await import('@cyclonedx/cyclonedx-library');
  const { imageId, imageName, finished, packages, source, files = [] } = contents;
  const toComponent = await componentFactory();
  const image = new Models.Component(Enums.ComponentType.OperatingSystem, imageName ?? imageId, {
    bomRef: `image:${imageId}`,
    version: imageId,
  });
  for (const { name, sha256 } of files) {
    const hashes = new Models.HashDictionary([[Enums.HashAlgorithm['SHA-256'], sha256]]);
    image.components.add(
      new Models.Component(Enums.ComponentType.File, name, { bomRef: `file:${name}`, hashes }),
    );
  }
  const bom = new Models.Bom({
    serialNumber: serialNumberOf(contents),
    version: 1,
    metadata: new Models.Metadata({ component: image, timestamp: new Date(finished) }),
  });
  if (source !== undefined) {
    bom.metadata.properties.add(new Models.Property('nodepool-builder:source', source));
  }
  const references = new Set<string>();
  for (const one of packages.toSorted(packageOrder)) {
    if (references.has(one.purl)) continue;
    references.add(one.purl);
    bom.components.add(toComponent(one));
  }
  const factory = new Serialize.JSON.Normalize.Factory(Spec.Spec1dot6);
  const text = new Serialize.JsonSerializer(factory).serialize(bom, { sortLists: true, space: 1 });
  return `${text}\n`;
}

async function componentFactory(): Promise<(one: Package) => Models.Component> {
  const { Enums, Models, SPDX } = await import('@cyclonedx/cyclonedx-library');
  return ({ name, version, purl, license }) => {
    const component = new Models.Component(Enums.ComponentType.Library, name, {
      bomRef: purl,
      version,
      purl,
    });
    if (license !== undefined) {
      const id = SPDX.fixupSpdxId(license);
      const known = id === undefined ? new Models.NamedLicense(license) : new Models.SpdxLicense(id);
      component.licenses.add(known);
    }
    return component;
  };
}

/** Computes a UUID (version 8, RFC 9562) that depends only on the image and its packages. */
function serialNumberOf({ imageId, finished, packages, files = [] }: BillOfMaterials): string {
  const facts = [
    imageId,
    finished,
    files.map(({ sha256 }) => sha256).toSorted(),
    packages.map(({ purl }) => purl).toSorted(),
  ];
  const digest = createHash('sha256').update(JSON.stringify(facts)).digest().subarray(0, 16);
  digest.writeUInt8(0x80 | (digest.readUInt8(6) & 0x0f), 6);
  digest.writeUInt8(0x80 | (digest.readUInt8(8) & 0x3f), 8);
  const [, ...parts] = /^(.{8})(.{4})(.{4})(.{4})(.{12})$/.exec(digest.toString('hex')) ?? [];
  return `urn:uuid:${parts.join('-')}`;
}
