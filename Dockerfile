FROM python:3.12-slim
WORKDIR /app
COPY requirements/serve.txt requirements/
RUN pip install --no-cache-dir --require-hashes -r requirements/serve.txt
COPY . .
RUN pip install --no-cache-dir --no-deps --no-build-isolation ./client . \
    && useradd --create-home cairn && mkdir /data && chown cairn /data
USER cairn
ENV CAIRN_HOME=/data CAIRN_HOST=0.0.0.0
VOLUME /data
EXPOSE 8400
CMD ["cairn-server", "serve"]
