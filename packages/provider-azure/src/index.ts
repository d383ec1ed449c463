import '@nodepool-builder/image-builder';
