import {
  type CloudImageEntry,
  type CloudImageKeys,
  type FilterEntry,
  ImageError,
} from '@nodepool-builder/image-builder';
import { combineFilters } from '@nodepool-builder/image-builder/plugin';

/** DescribeImages filters with a different name among our filters. */
const NAMES: Readonly<Record<string, string>> = {
  name: 'name',
  architecture: 'architecture',
  'owner-id': 'owner',
  'image-type': 'property:image-type',
  'root-device-type': 'property:root-device-type',
  'virtualization-type': 'property:virtualization-type',
  hypervisor: 'property:hypervisor',
};

/** Our own keys, which may be mixed with AWS keys. */
const OWN = /^(?:image-name|tag|owner|visibility|created-after|not-older-than|property:.+)$/;

/** Filters that match all candidates with this value, and none with any other value. */
const ALWAYS: Readonly<Record<string, string>> = { state: 'available' };

/** Translates one DescribeImages filter in nodepool's form. @throws ImageError `invalid-filter` */
function translate({ name, values }: FilterEntry): readonly FilterEntry[] {
  const known = NAMES[name];
  if (known !== undefined && !(known !== 'name' && values.some((value) => /[*?]/.test(value)))) {
    return [{ name: known, values }];
  }
  if (OWN.test(name)) return [{ name, values }];
  if (name.startsWith('tag:') && !values.some((value) => /[*?]/.test(value))) {
    return [{ name: `property:${name.slice(4)}`, values }];
  }
  if (name === 'is-public') {
    return [
      { name: 'visibility', values: values.map((value) => (/^true$/i.test(value) ? 'public' : 'private')) },
    ];
  }
  if (ALWAYS[name] !== undefined && values.includes(ALWAYS[name])) return [];
  const reason = `the filter "${name}" with the values "${values.join('", "')}" is not supported`;
  const remedy =
    'use name, architecture, owner-id, is-public, tag:KEY without wildcards, or the keys of "latest --filter"';
  throw new ImageError('invalid-filter', `${reason}; ${remedy}`);
}

/** Returns all filters. AWS filters and our own keys may overlap: an image must match both. */
function filtersOf({ 'image-filters': filters = [] }: CloudImageEntry): readonly FilterEntry[] {
  const groups = Map.groupBy(filters, ({ name }) => name).values();
  return combineFilters(...Array.from(groups, (group) => group.flatMap(translate)));
}

/** Cloud image keys of nodepool's driver `aws`. */
export const AWS_CLOUD_IMAGES: CloudImageKeys = {
  properties: {},
  filters: filtersOf,
};
